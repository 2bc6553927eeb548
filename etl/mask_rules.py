r"""Which texts count as a secret, and how is each form called?

A rule is data: a regular expression in the dialect of the Rust ``regex`` crate (no look-around, linear time), split in
what stands ``before`` the secret (kept), the ``secret`` itself (replaced) and what stands ``after`` it (kept).

Dialect notes, each for a reason:

* ``(?-u:\b)`` and spelled-out ASCII classes instead of ``\b``, ``\w``, ``\d``: a Unicode word boundary throws the engine
  off its lazy DFA on any text that is not ASCII.
* unbounded repeats instead of large bounded ones (``{0,400}`` copies its operand 400 times into the automaton).
* no inner capture groups: the engine numbers its three groups itself.

Most texts hold JSON, and JSON inside JSON: a token may follow the two characters ``\n``, a quote may be ``\"`` or
``\\\"``. ``_LEFT`` and ``_Q`` say so once for all rules.

Formats: the vendors' public documentation of their token prefixes.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """One form of secret. Several rows may share an ``id`` (variants of one form, e.g. how the value is quoted).

    ``hints``: lower-case literals, one of which stands in the lower-cased text wherever the rule can match.
    ``check``: name of the plausibility test in ``etl.mask.CHECKS`` the secret must pass; "" takes every match.
    """

    id: str
    secret: str
    before: str = ""
    after: str = ""
    hints: tuple[str, ...] = ()
    check: str = ""

    @property
    def pattern(self) -> str:
        """The whole expression; its one capture group is the secret."""
        return f"(?:{self.before})({self.secret})(?:{self.after})"


_B = r"(?-u:\b)"
_LEFT = rf"(?:{_B}|\\[bfnrt]|\\u[0-9a-fA-F]{{4}}|%[0-9a-fA-F]{{2}})"
_Q = r"""(?:\\*["'`]|&quot;)"""
_W = r"[A-Za-z0-9_-]"
_WS = r"(?:\s|\\+[nrt])"
_B64 = r"[A-Za-z0-9+/]"
_EQ = r"[ \t]*(?::=|=>|[:=])[ \t]*"


def _own(rule_id: str, secret: str, *hints: str, check: str = "", right: bool = False) -> Rule:
    """A token known by its own look, anywhere: the hints are its literal parts."""
    return Rule(rule_id, secret, "", _B if right else "", tuple(h.lower() for h in hints), check)


def _word(rule_id: str, secret: str, *hints: str, check: str = "", right: bool = False) -> Rule:
    """As ``_own``, but only where a word starts: its prefix is short enough to end another word (``task-``, ``_hf_``)."""
    return Rule(rule_id, secret, _LEFT, _B if right else "", tuple(h.lower() for h in hints), check)


# A PEM block: closed (any safe character up to END), or open: base64 lines, joined by white space, by ``\n`` escapes, or
# by the quotes and commas of a list of lines in source code (long lines only: a JSON key is not one).
_BEGIN = r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
_END = r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
_JOIN = r"""(?:\s|\\+[nrt]|\\*["'`]|[,+.])+"""
_PEM = (
    rf"{_BEGIN}(?:[A-Za-z0-9+/=,:.()@_\s\\-]*?{_END}"
    rf"|{_WS}*(?:[A-Z][A-Za-z-]+: [A-Za-z0-9,. -]+{_WS}+)*{_B64}{{16,}}={{0,2}}(?:{_WS}+{_B64}{{16,}}={{0,2}})*"
    rf"(?:{_WS}+{_B64}+={{1,2}})?"
    rf"|(?:{_JOIN}{_B64}{{40,}}={{0,2}})+(?:(?:{_JOIN}{_B64}+={{0,2}})?{_JOIN}{_END})?)"
)

_BLOCKS: tuple[Rule, ...] = (
    _own("private-key", _PEM, "private key", check="pem"),
    Rule(
        "putty-private-key",
        rf"{_B64}{{16,}}={{0,2}}(?:{_WS}+{_B64}{{8,}}={{0,2}})*",
        rf"Private-Lines: ?[0-9]+{_WS}+",
        hints=("private-lines",),
    ),
    _own("age-secret-key", r"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Za-z]{20,}", "AGE-SECRET-KEY-"),
)

_WEBHOOKS: tuple[Rule, ...] = (
    Rule(
        "slack-webhook",
        r"[A-Za-z0-9_/+-]{20,}",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/",
        hints=("hooks.slack.com",),
    ),
    Rule(
        "discord-webhook",
        rf"{_W}{{20,}}",
        r"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]+/",
        hints=("/webhooks/",),
    ),
    Rule(
        "teams-webhook",
        r"[A-Za-z0-9@/_-]{30,}",
        r"webhook\.office\.com/webhookb2/",
        hints=("webhook.office.com",),
    ),
    Rule("azure-sas", r"[A-Za-z0-9%+/_-]{20,}={0,2}", r"(?:[?&;]|\\u0026)sig=", hints=("sig=",)),
    Rule("aws-presigned", r"[0-9a-f]{64}", r"X-Amz-Signature=", hints=("x-amz-signature",)),
    Rule("aws-presigned", r"[A-Za-z0-9%+/=_-]{20,}", r"X-Amz-Security-Token=", hints=("x-amz-security-token",)),
)

# Prefixes of the vendors. The lengths are lower bounds, well under the real ones: a clipped token is still a secret.
_TOKENS: tuple[Rule, ...] = (
    _own("github-token", r"gh[pousr]_[A-Za-z0-9_]{20,}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _own("github-fine-grained-pat", r"github_pat_[A-Za-z0-9_]{20,}", "github_pat_"),
    _word(
        "gitlab-token",
        rf"gl(?:pat|dt|rt|rtr|soat|ptt|ft|imt|agent|cbt|oas|ffct|wt)-{_W}{{20,}}(?:\.[0-9a-z]{{2,10}})*",
        *("glpat-", "gldt-", "glrt-", "glrtr-", "glsoat-", "glptt-", "glft-"),
        *("glimt-", "glagent-", "glcbt-", "gloas-", "glffct-", "glwt-"),
    ),
    _own("gitlab-runner-registration", rf"GR1348941{_W}{{20,}}", "GR1348941"),
    _word("anthropic-api-key", rf"sk-ant-{_W}{{20,}}", "sk-ant-"),
    _word("openrouter-api-key", r"sk-or-v[0-9]-[A-Za-z0-9]{20,}", "sk-or-"),
    _word("langfuse-secret-key", r"sk-lf-[A-Za-z0-9-]{20,}", "sk-lf-"),
    _word("openai-api-key", rf"sk-(?:proj|svcacct|service|admin|None)-{_W}{{20,}}", "sk-", check="digit"),
    _word("openai-api-key", r"sk-[A-Za-z0-9]{20,}", "sk-", check="mixed"),
    _word("mapbox-secret-token", rf"sk\.eyJ{_W}{{20,}}\.{_W}{{10,}}", "sk.eyJ"),
    _word("slack-token", r"xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}", "xox", check="digit"),
    _word("slack-app-token", r"xapp-[0-9]-[A-Za-z0-9-]{20,}", "xapp-"),
    _word("stripe-api-key", r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{16,}", "k_live_", "k_test_", "k_prod_"),
    _word("stripe-webhook-secret", rf"whsec_{_B64}{{20,}}={{0,2}}", "whsec_"),
    _word("elevenlabs-api-key", r"sk_[0-9a-f]{40,}", "sk_"),
    _word("aws-access-key-id", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}", "AKIA", "ASIA", "ABIA", "ACCA", right=True),
    _word("aws-session-token", rf"(?:FwoGZXIvYXdz|IQoJb3JpZ2lu){_B64}{{20,}}={{0,2}}", "FwoGZXIvYXdz", "IQoJb3JpZ2lu"),
    _word("aws-bedrock-key", rf"(?:ABSK|bedrock-api-key-){_B64}{{60,}}={{0,2}}", "ABSK", "bedrock-api-key-"),
    _word("google-api-key", rf"AIza{_W}{{30,}}", "AIza"),
    _own("google-oauth-secret", rf"GOCSPX-{_W}{{20,}}", "GOCSPX-"),
    _word("google-oauth-token", rf"ya29\.[A-Za-z0-9._-]{{20,}}", "ya29."),
    _word("google-refresh-token", rf"1//0{_W}{{30,}}", "1//0"),
    _word("azure-ad-client-secret", r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{30,}", "q~"),
    _word("azure-devops-pat", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}", "azdo", right=True),
    _word("npm-token", r"npm_[A-Za-z0-9]{30,}", "npm_", check="digit"),
    _own("pypi-token", rf"pypi-Ag[A-Za-z0-9]{{2}}{_W}{{20,}}", "pypi-Ag"),
    _word("rubygems-token", r"rubygems_[0-9a-f]{32,}", "rubygems_"),
    _word("crates-token", r"cio[A-Za-z0-9]{32}", "cio", check="digit", right=True),
    _word("nuget-token", r"oy2[a-z0-9]{43}", "oy2", right=True),
    _word("clojars-token", r"CLOJARS_[a-z0-9]{40,}", "CLOJARS_"),
    _own("docker-token", rf"dckr_(?:pat|oat)_{_W}{{20,}}", "dckr_"),
    _word("twilio-api-key", r"SK[0-9a-f]{32}", "sk", right=True),
    Rule("twilio-auth-token", r"[0-9a-f]{32}", rf"AC[0-9a-f]{{32}}{_Q}?[:, ]+{_Q}?", _B, ("ac",)),
    _word("sendgrid-api-key", rf"SG\.{_W}{{16,}}\.{_W}{{16,}}", "sg.", check="digit"),
    _word("mailgun-api-key", r"(?:pub)?key-[0-9a-zA-Z]{32}", "key-", check="digit", right=True),
    _word("mailgun-api-key", r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}", "-", right=True),
    _word("mailchimp-api-key", r"[0-9a-f]{32}-us[0-9]{1,2}", "-us", right=True),
    _word("brevo-api-key", r"x(?:keysib|smtpsib)-[0-9a-f]{40,}(?:-[A-Za-z0-9]{10,})?", "xkeysib-", "xsmtpsib-"),
    _word("resend-api-key", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}", "re_", check="digit"),
    _word("huggingface-token", r"(?:hf_|api_org_)[A-Za-z0-9]{30,}", "hf_", "api_org_", check="digit"),
    _word("replicate-token", r"r8_[A-Za-z0-9]{30,}", "r8_", check="digit"),
    _word("groq-api-key", r"gsk_[A-Za-z0-9]{20,}", "gsk_", check="digit"),
    _word("xai-api-key", rf"xai-[A-Za-z0-9_]{{20,}}{_W}*", "xai-", check="digit"),
    _word("perplexity-api-key", r"pplx-[A-Za-z0-9]{20,}", "pplx-"),
    _word("nvidia-api-key", rf"nvapi-{_W}{{20,}}", "nvapi-"),
    _word("tavily-api-key", rf"tvly-(?:dev-|prod-)?[A-Za-z0-9]{{20,}}", "tvly-"),
    _word("pinecone-api-key", r"pcsk_[A-Za-z0-9_]{30,}", "pcsk_"),
    _word("langsmith-api-key", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}", "lsv2_"),
    _word("together-api-key", rf"tgp_v1_{_W}{{30,}}", "tgp_v1_"),
    _word("runpod-api-key", r"rpa_[A-Z0-9]{30,}", "rpa_"),
    _word("e2b-api-key", r"e2b_[0-9a-f]{30,}", "e2b_"),
    _word("digitalocean-token", r"do[opr]_v1_[A-Za-z0-9]{20,}", "doo_v1_", "dop_v1_", "dor_v1_"),
    _word("linear-api-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{20,}", "lin_api_", "lin_oauth_"),
    _word("notion-token", r"ntn_[A-Za-z0-9]{20,}", "ntn_", check="digit"),
    _word("notion-token", r"secret_[A-Za-z0-9]{40,}", "secret_", check="digit"),
    _word("databricks-token", r"(?:dapi|dkea|dose)[0-9a-f]{32}(?:-[0-9])?", "dapi", "dkea", "dose", right=True),
    _word("shopify-token", r"shp(?:at|ss|ca|pa|tka)_[A-Za-z0-9]{20,}", *(f"shp{k}_" for k in ("at", "ss", "ca", "pa"))),
    _word("square-token", rf"sq0(?:atp|csp)-{_W}{{20,}}", "sq0atp-", "sq0csp-"),
    _word("square-token", rf"EAAA{_W}{{56,}}", "eaaa", check="digit"),
    _word("facebook-token", r"EAACEdEose0cBA[0-9A-Za-z]{10,}", "EAACEdEose0cBA"),
    _word("facebook-token", r"EAA[0-9A-Za-z]{90,}", "eaa", check="digit"),
    _word("braintree-token", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}", "access_token$"),
    _word("doppler-token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{30,}", "dp."),
    _word("vault-token", rf"hv[bsr]\.{_W}{{20,}}", "hvb.", "hvs.", "hvr."),
    _word("terraform-token", rf"[A-Za-z0-9]{{10,20}}\.atlasv1\.{_W}{{30,}}", ".atlasv1."),
    _word("grafana-token", rf"glc_{_B64}{{30,}}={{0,2}}", "glc_"),
    _word("grafana-token", r"glsa_[A-Za-z0-9]{20,}(?:_[A-Fa-f0-9]{8})?", "glsa_"),
    _word("newrelic-key", r"(?:NRAK|NRII|NRAA|NRRA)-[A-Za-z0-9_-]{20,}", "nrak-", "nrii-", "nraa-", "nrra-"),
    _word("newrelic-key", r"[0-9a-f]{36}NRAL", "nral", right=True),
    _word("sentry-token", r"sntry[su]_[A-Za-z0-9+/=_-]{20,}", "sntrys_", "sntryu_"),
    Rule("telegram-bot-token", rf"[0-9]{{8,10}}:AA{_W}{{30,}}", f"(?:{_LEFT}|bot)", "", (":aa",)),
    _word(
        "discord-bot-token",
        rf"(?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){{5,}}[A-Za-z0-9]{{0,4}}\.{_W}{{6}}\.{_W}{{25,}}",
        ".",
    ),
    _word("heroku-api-key", rf"HRKU-{_W}{{20,}}", "hrku-"),
    _word("flyio-token", rf"fo1_{_W}{{30,}}", "fo1_"),
    _word("flyio-token", r"fm[12][ar]?_[A-Za-z0-9+/=,_-]{40,}", "fm1", "fm2"),
    _word("atlassian-token", r"AT(?:ATT|CTT)3[A-Za-z0-9_=-]{20,}", "atatt3", "atctt3"),
    _word("trello-token", r"ATTA[0-9a-f]{64}", "atta"),
    _word("bitbucket-token", r"ATBB[A-Za-z0-9]{20,}", "atbb", check="digit"),
    _word("figma-token", rf"fig[doru]_{_W}{{20,}}", "figd_", "figo_", "figr_", "figu_"),
    _word("postman-api-key", r"PMA[KT]-[A-Za-z0-9-]{20,}", "pmak-", "pmat-"),
    _word("pulumi-token", r"pul-[0-9a-f]{30,}", "pul-"),
    _word("planetscale-token", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{20,}", "pscale_"),
    _word("supabase-token", rf"(?:sbp_(?:[a-z0-9]+_)?[0-9a-f]{{30,}}|sb_secret_{_W}{{20,}})", "sbp_", "sb_secret_"),
    _word("vercel-token", r"vc[aikpr]_[A-Za-z0-9]{20,}", *(f"vc{k}_" for k in "aikpr"), check="digit"),
    _word("vercel-blob-token", r"vercel_blob_rw_[A-Za-z0-9_]{20,}", "vercel_blob_rw_"),
    _word("neon-api-key", r"napi_[a-z0-9]{40,}", "napi_", check="digit"),
    _word("netlify-token", r"nfp_[A-Za-z0-9]{30,}", "nfp_", check="digit"),
    _word("onepassword-token", r"ops_eyJ[A-Za-z0-9+/=_-]{40,}", "ops_eyJ"),
    _word("onepassword-secret-key", r"A3-[A-Z0-9]{6}-[A-Z0-9]{5,6}-?[A-Z0-9]{5,6}(?:-[A-Z0-9]{5}){3}", "a3-"),
    Rule("okta-token", rf"{_W}{{30,}}", "SSWS ", "", ("ssws ",), "digit"),
    _word("airtable-token", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}", "pat"),
    _word("cloudflare-token", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}", "v1.0-"),
    _word("contentful-token", rf"CFPAT-{_W}{{30,}}", "cfpat-"),
    _word("dropbox-token", rf"sl\.(?:u\.)?{_W}{{100,}}", "sl."),
    _word("dynatrace-token", r"dt0[a-z][0-9]{2}\.[A-Z2-7]{24}\.[A-Z2-7]{50,}", "dt0"),
    _word("easypost-key", r"EZ[AT]K[A-Za-z0-9]{50,}", "ezak", "eztk"),
    _word("flutterwave-key", r"FLWSECK(?:_TEST)?-[A-Za-z0-9-]{12,}", "flwseck"),
    _word("hubspot-token", r"pat-(?:na|eu|ap)[0-9]-[0-9a-f-]{36}", "pat-"),
    _word("tailscale-key", r"tskey-[a-z]+-[A-Za-z0-9-]{16,}", "tskey-"),
    _word("openshift-token", rf"sha256~{_W}{{40,}}", "sha256~"),
    _word("prefect-token", r"pn[ub]_[A-Za-z0-9]{30,}", "pnu_", "pnb_", check="digit"),
    _word("readme-token", r"rdme_[a-z0-9]{60,}", "rdme_"),
    _word("sonar-token", r"sq[apu]_[0-9a-f]{40}", "sqa_", "sqp_", "squ_", right=True),
    _word("sourcegraph-token", r"sgp_(?:[a-zA-Z0-9]+_)?[0-9a-f]{40}", "sgp_", right=True),
    _word("snyk-token", rf"snyk_[a-z]{{3}}\.[0-9a-z]{{8}}\.{_W}{{20,}}", "snyk_"),
    _word("artifactory-token", r"(?:AKCp[0-9A-Za-z]{60,}|cmVmdGtu[0-9A-Za-z]{50,})", "akcp", "cmvmdgtu"),
    _word("buildkite-token", r"bkua_[0-9a-f]{40}", "bkua_", right=True),
    _word("circleci-token", r"CCIP(?:AT|RJ)_[A-Za-z0-9]+_[0-9a-f]{40}", "ccipat_", "cciprj_", right=True),
    _word("posthog-key", r"phx_[A-Za-z0-9]{30,}", "phx_", check="digit"),
    _word("alibaba-access-key", r"LTAI[A-Za-z0-9]{16,}", "ltai", check="digit"),
    _word("typeform-token", r"tfp_[A-Za-z0-9_.=-]{40,}", "tfp_", check="digit"),
    _word("adafruit-key", r"aio_[A-Za-z0-9]{28}", "aio_", check="digit", right=True),
    _own("grafana-api-key", r"eyJrIjoi[A-Za-z0-9+/=]{30,}", "eyJrIjoi"),
    _own("jwt", rf"eyJ{_W}{{8,}}\.ey{_W}{{8,}}\.{_W}*", "eyj"),
    _own("jwt", rf"eyJ{_W}{{16,}}(?:\.{_W}*){{4}}", "eyj"),
)

# From here on the surroundings make the secret. Names match in any case, also as the end of a longer name.
_PLAIN = r"""[^\s"'`\\<>$]"""
# One command, over ``\``-continued lines (in JSON: two backslashes and ``\n``) but not past a line end, pipe or ``;``.
_SAME_COMMAND = r"(?:[^\n\r\\|;]|\\\r?\n|\\\\\\n|\\[\x22'$\\])*?"
_SCHEME = r"(?i:bearer|token|bot|apikey|api-key|key|negotiate|github|sso-key)"
_DB_FIELD = r"(?i:server|host|data source|addr(?:ess)?|uid|user(?:name)?|user id|database|initial catalog|port|endpoint)"
_PAIR = r"""[A-Za-z0-9_.%-]+=[^\s;"'`\\,<>]*"""
_FLAG = r"(?i:password|passwd|passphrase|pass|pwd|token|secret|api-?key|access-?key|secret-?key|private-?key|auth)"

_CONTEXT: tuple[Rule, ...] = (
    Rule(
        "url-password",
        r"""[^\s/?#"'`<>\\]+""",
        r"""[A-Za-z][A-Za-z0-9+.-]*:(?:\\*/){2}[^\s/?#:@"'`<>\\(){}\[\]]*:""",
        r"@[A-Za-z0-9\[{$%_]",
        ("@",),
        "url",
    ),
    Rule("url-token", rf"{_W}{{20,}}", r"https?:(?:\\*/){2}", r"@[A-Za-z0-9]", ("@",), "random"),
    Rule(
        "authorization-header",
        r"[A-Za-z0-9._~+/=:|-]{8,}",
        rf"(?i:authorization){_Q}?[ \t]*(?:=>|[:=,])[ \t]*{_Q}?{_SCHEME}(?:[ \t]+|%20)(?:token=)?{_Q}?",
        "",
        ("authorization",),
        "header",
    ),
    Rule("basic-auth", rf"{_B64}{{8,}}={{0,2}}", rf"{_LEFT}(?i:basic)[ \t]+", "", ("basic",), "basic"),
    Rule("docker-auth", rf"{_B64}{{8,}}={{0,2}}", rf"{_Q}_?auth{_Q}[ ]*:[ ]*{_Q}", _Q, ("auth",), "basic"),
    Rule(
        "bearer-token",
        r"[A-Za-z0-9._~+/-]{16,}={0,2}",
        rf"{_LEFT}(?i:bearer)(?:[ \t]+|%20)",
        "",
        ("bearer",),
        "random",
    ),
    Rule(
        "api-key-header",
        r"""[^\s"'`\\,;<>(){}$\[\]]{8,}""",
        rf"{_LEFT}(?i:x-(?:[a-z]+-)*(?:key|token|secret|auth)|private-token|job-token|deploy-token|api-key)"
        rf"{_Q}?[ \t]*(?:=>|[:,])[ \t]*{_Q}?",
        "",
        ("x-", "-token", "api-key"),
        "value",
    ),
    Rule(
        "set-cookie",
        r"""[^\s;"'`\\,<>]{8,}""",
        rf"(?i:set-cookie){_Q}?[ \t]*[:,][ \t]*\[?{_Q}?[A-Za-z0-9_.%-]+=",
        "",
        ("set-cookie",),
        "url",
    ),
    Rule(
        "cookie",
        rf"{_PAIR}(?:;[ ]?{_PAIR})*",
        rf"(?:{_LEFT}(?i:cookie){_Q}?[ \t]*[:,][ \t]*{_Q}?|--cookie[ =]{_Q}?)",
        "",
        ("cookie",),
        "cookie",
    ),
    Rule(
        "curl-user",
        rf"{_PLAIN}{{3,}}",
        rf"{_LEFT}curl{_B}{_SAME_COMMAND}[\s\x22',](?:-u|--user|--proxy-user|-U)(?:[ =]|{_Q},[ ]*)?{_Q}?"
        r"""[^\s:"'`\\<>$/]+:""",
        "",
        ("curl",),
        "url",
    ),
    Rule(
        "cli-password",
        r"""[^\s"'`\\|;&<>(){}\[\]$,-][^\s"'`\\|;&<>(){}]{5,}""",
        rf"--(?:[A-Za-z0-9]+-)*{_FLAG}(?:=|[ \t]+|{_Q},\s*){_Q}?",
        "",
        ("--",),
        "cli",
    ),
    Rule("cli-password", rf"{_PLAIN}{{3,}}", rf"{_LEFT}sshpass[ \t]+-p[ \t]*{_Q}?", "", ("sshpass",), "url"),
    Rule(
        "cli-password",
        r"""[^\s"'`\\<>$|;&=-][^\s"'`\\<>$|;&]{5,}""",
        rf"{_LEFT}(?:mysql(?:dump|admin|import|sh)?|mariadb(?:-dump)?){_B}{_SAME_COMMAND}[\s\x22',]-p{_Q}?",
        "",
        ("mysql", "mariadb"),
        "cli",
    ),
    Rule(
        "cli-password",
        rf"{_PLAIN}{{4,}}",
        rf"{_LEFT}(?:redis-cli{_B}{_SAME_COMMAND}\s-a|(?:docker|podman|helm registry|oc|az|skopeo)[ ]login{_B}"
        rf"{_SAME_COMMAND}\s-p|(?:un)?zip{_B}{_SAME_COMMAND}\s-P)[ =]{_Q}?",
        "",
        ("redis-cli", "login", "zip"),
        "url",
    ),
    Rule("cli-password", rf"{_PLAIN}{{4,}}", rf"-pass(?:in|out)?[ ]+{_Q}?pass:", "", ("pass:",), "url"),
    Rule(
        "cli-password",
        rf"{_PLAIN}{{4,}}",
        rf"(?i:ConvertTo-SecureString)(?i:[ ]+-String)?[ ]+{_Q}",
        "",
        ("securestring",),
        "url",
    ),
    Rule(
        "sql-password",
        r"""[^\s"'\\]{4,}""",
        r"(?i:identified by|password)[ ]+\\*'",
        r"\\*'",
        ("identified by", "password"),
        "url",
    ),
    Rule(
        "netrc-password",
        rf"{_PLAIN}{{3,}}",
        rf"{_LEFT}(?:machine{_WS}+[^\s\\]+|default){_WS}+login{_WS}+[^\s\\]+{_WS}+password{_WS}+",
        "",
        ("login",),
        "url",
    ),
    Rule(
        "connection-password",
        r"""[^;\s"'`\\<>]{3,}""",
        rf"""{_DB_FIELD}[ ]?=[^;"'`\\\n]*;[ ]?(?:[A-Za-z ]+=[^;"'`\\\n]*;[ ]?)*(?i:password|pwd)[ ]?=[ ]?""",
        "",
        ("password", "pwd"),
        "url",
    ),
    Rule(
        "connection-password",
        r"""[^;\s"'`\\<>]{3,}""",
        rf"{_LEFT}(?i:password|pwd)=",
        rf";[ ]?(?:[A-Za-z ]+=[^;\x22'`\\\n]*;[ ]?)*{_DB_FIELD}[ ]?=",
        ("password", "pwd"),
        "url",
    ),
    Rule(
        "azure-account-key",
        rf"{_B64}{{20,}}={{0,2}}",
        r"(?i:AccountKey|SharedAccessKey|SharedSecretValue)=",
        "",
        ("accountkey=", "sharedaccesskey=", "sharedsecretvalue="),
    ),
    Rule(
        "aws-secret-access-key",
        r"[A-Za-z0-9/+]{40,}={0,2}",
        rf"(?i:(?:aws|secret)[A-Za-z_.-]*key){_Q}?{_EQ}{_Q}?",
        "",
        ("key",),
        "digit",
    ),
    Rule(
        "npmrc-auth",
        r"""[^\s"'`\\$<>{}]{6,}""",
        rf"{_LEFT}(?:_authToken|_auth|_password)[ ]?=[ ]?{_Q}?",
        "",
        ("_auth", "_password"),
        "header",
    ),
    Rule(
        "datadog-key",
        r"[0-9a-f]{32,40}",
        rf"(?i:(?:dd|datadog)[_-]?(?:api|app|application)[_-]?key){_Q}?{_EQ}{_Q}?",
        _B,
        ("dd", "datadog"),
    ),
    Rule("password-hash", r"\$(?:2[abxy]|5|6|y|apr1|argon2i?d?)\$[./A-Za-z0-9$=,+]{20,}", "", "", ("$",), "digit"),
)

# ---- assignments to a telling name: last, so that a known format is called by its own name
_PASSWORD = r"(?:password|passwd|passphrase|passcode|pwd|(?-u:\b|_)pass|_pw)"
_SECRET = (
    r"(?:token|secret|credentials?|auth|authorization|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key"
    r"|signing[_-]?key|encryption[_-]?key|auth[_-]?key|account[_-]?key|master[_-]?key|service[_-]?key|session[_-]?key"
    r"|license[_-]?key|webhook[_-]?key|deploy[_-]?key|subscription[_-]?key|client[_-]?key)"
)
_PASSWORD_HINTS = ("passw", "passphrase", "passcode", "pwd", "pass", "_pw")
_SECRET_HINTS = ("token", "secret", "credential", "auth", "key")
_STAGE = r"(?:[_-]?(?:value|prod|production|dev|test|staging|live|old|new|[0-9]{1,2}))?"
# ``=``, ``:=``, ``=>``, ``: str =``, ``", value="``, a sibling ``value`` of a name, ``["x"] =``
_ASSIGN = (
    rf"(?:(?:{_Q}\]?)?[ \t]*(?::=|=>|[:=])[ \t]*(?:&?[A-Za-z][A-Za-z0-9_.\[\] |?]*=[ ]?)?"
    rf"|{_Q}?[ ]*,?(?:\s|\\n)*{_Q}?(?i:value){_Q}?[ ]?[:=][ ]?)"
)
_STRUCTURE = r",:\]})"  # what follows a closing quote in JSON: a value never starts so, or we hold the wrong quote
_VALUE_FORMS = (
    (r"\x22", rf"[^\s\x22\\{_STRUCTURE}](?:[^\s\x22\\]|\\[^\s]){{7,}}", r"\x22", "value"),
    (r"['`]", rf"[^\s\x22'`\\{_STRUCTURE}](?:[^\s\x22'`\\]|\\[^\s]){{7,}}", r"['`]", "value"),
    (r"\\[\x22'`]", rf"[^\s\x22'\\{_STRUCTURE}](?:[^\s\x22'`\\]|\\{{2,}}[^\s\\]){{7,}}", r"\\[\x22'`]", "value"),
    (r"(?:\\{2,}[\x22'`]|&quot;)", rf"[^\s\x22'\\{_STRUCTURE}&][^\s\x22'`\\&]{{7,}}", r"(?:\\{2,}[\x22'`]|&quot;)", "value"),
    (
        rf"{_Q}?",
        r"""[^\s"'`\\,;:=&|<>(){}\[\]0-9]*[0-9][^\s"'`\\,;:=&|<>(){}\[\]]*={0,2}""",
        r"""(?:$|[\s"'`\\,;&|<>)}\]:])""",
        "bare",
    ),
)


def _assignments(rule_id: str, name: str, hints: tuple[str, ...], family: str) -> tuple[Rule, ...]:
    """The rows of one family of names, one per way to write the value."""
    return tuple(
        Rule(rule_id, secret, f"(?i:{name}{_STAGE}){_ASSIGN}{opening}", closing, hints, family + check)
        for opening, secret, closing, check in _VALUE_FORMS
    )


def _environment(rule_id: str, name: str, hints: tuple[str, ...], check: str) -> Rule:
    """``DB_PASSWORD=…`` as a shell or an ``.env`` file writes it: the value runs to the next blank or quote."""
    before = rf"{_LEFT}[A-Z0-9_]*{name}(?:_(?:PROD|PRODUCTION|DEV|TEST|STAGING|LIVE|[0-9]+))?={_Q}?"
    return Rule(rule_id, r"""[^\s"'`\\]{6,}""", before, "", hints, check)


def _element(rule_id: str, name: str, hints: tuple[str, ...], check: str) -> Rule:
    """``<password>…</password>``."""
    return Rule(rule_id, r"""[^\s<>"\\]{6,}""", rf"<[A-Za-z0-9_.:-]*(?i:{name})>", r"<\\*/", hints, check)


_ENV_PASSWORD = r"(?:PASSWORD|PASSWD|PASSPHRASE|PASS|PWD)"
_ENV_SECRET = r"(?:SECRET|TOKEN|CREDENTIALS?|AUTH|API_?KEY|(?:ACCESS|SECRET|PRIVATE|SIGNING|ENCRYPTION|MASTER)_?KEY)"

_GENERIC: tuple[Rule, ...] = (
    _environment("env-password", _ENV_PASSWORD, _PASSWORD_HINTS, "env"),
    _environment("env-secret", _ENV_SECRET, _SECRET_HINTS, "value"),
    _element("xml-password", _PASSWORD, _PASSWORD_HINTS, "env"),
    _element("xml-secret", _SECRET, _SECRET_HINTS, "value"),
    *_assignments("generic-password", _PASSWORD, _PASSWORD_HINTS, "password-"),
    *_assignments("generic-api-key", _SECRET, _SECRET_HINTS, ""),
)

RULES: tuple[Rule, ...] = (*_BLOCKS, *_WEBHOOKS, *_TOKENS, *_CONTEXT, *_GENERIC)
