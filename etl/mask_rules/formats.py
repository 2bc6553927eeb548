r"""Which texts are secret by their own look: key blocks, webhooks, and tokens with a vendor's prefix?

A rule is data: a regular expression in the dialect of the Rust ``regex`` crate (no look-around, linear time), split in
what stands ``before`` the secret (kept), the ``secret`` itself (replaced) and what stands ``after`` it (kept).

Dialect notes, each for a reason:

* ``(?-u:\b)`` and spelled-out ASCII classes instead of ``\b``, ``\w``, ``\d``: a Unicode word boundary throws the
  engine off its lazy DFA on any text that is not ASCII.
* unbounded repeats instead of large bounded ones (``{0,400}`` copies its operand 400 times into the automaton).
* no inner capture groups: the engine numbers its three groups itself.
* a *cue* is a cheap necessary condition: an alternation that starts with literals of three bytes or more. Up to some
  forty of them the engine scans with SIMD (measured: 2 GB/s; all rules in one alternation: under 0.1 GB/s, because
  neither the literal scan nor the DFA's cache holds them). Hence rules come in groups of one cue each, and a telling
  name is looked for as ``token``, ``Token`` and ``TOKEN``, not in any mixture (eight times the literals).

Most texts hold JSON, and JSON inside JSON: a token may follow the two characters ``\n``, a quote may be ``\"`` or
``\\\"``. ``LEFT`` and ``QUOTE`` say so once for all rules.

Formats: the vendors' public documentation of their token prefixes.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """One form of secret. Several rows may share an ``id`` (variants of one form, e.g. how the value is quoted).

    ``hints``: literals, one of which stands in every text the rule can match.
    ``check``: name of the plausibility test in ``etl.mask.CHECKS`` the secret must pass; "" takes every match.
    ``cues``: stricter necessary conditions than the hints, where these are common words; each starts with a literal.
    """

    id: str
    secret: str
    before: str = ""
    after: str = ""
    hints: tuple[str, ...] = ()
    check: str = ""
    cues: tuple[str, ...] = ()

    @property
    def pattern(self) -> str:
        """The whole expression; its one capture group is the secret."""
        return f"(?:{self.before})({self.secret})(?:{self.after})"


class Group(NamedTuple):
    """Rules that are tried together, and the one expression that picks the rows to try them on.

    ``confirm``: a stricter condition, too slow for the whole column, that the picked rows must also fulfil.
    """

    cue: str
    rules: tuple[Rule, ...]
    confirm: str = ""


EDGE = r"(?-u:\b)"
RIGHT = rf"(?:{EDGE}|_)"
# A word may also start behind ``_`` (``mcp__server__TOKEN``), an escape, or the end of a terminal colour (``[31m``).
LEFT = rf"(?:{EDGE}|_|\\[bfnrt]|\\u[0-9a-fA-F]{{4}}|\\x[0-9a-fA-F]{{2}}|%(?:25)*[0-9a-fA-F]{{2}}|\[[0-9;]*m)"
QUOTE = r"""(?:\\*["'`]|&quot;)"""
WORD = r"[A-Za-z0-9_-]"
GAP = r"(?:\s|\\+[nrt])"
# ``/`` may stand as ``\/`` (JSON of PHP) or ``%2F``, the other signs of Base64 percent-encoded too.
SLASH = r"(?:\\*/|%2[Ff])"
EQUALS = r"(?:=|%3[Dd])"
B64 = r"(?:[A-Za-z0-9+/]|\\+/|%2[BbFf])"
B64_URL = r"(?:[A-Za-z0-9+/=_-]|\\+/|%2[BbFf]|%3[Dd])"
WORD_EQ = r"(?:[A-Za-z0-9_.=-]|%3[Dd])"


def own(
    rule_id: str, secret: str, *hints: str, check: str = "", right: bool = False, cues: tuple[str, ...] = ()
) -> Rule:
    """A token known by its own look, anywhere: the hints are its literal parts."""
    return Rule(rule_id, secret, "", RIGHT if right else "", hints, check, cues)


def word(
    rule_id: str, secret: str, *hints: str, check: str = "", right: bool = False, cues: tuple[str, ...] = ()
) -> Rule:
    """As ``own``, but only where a word starts: the prefix is short enough to end another word (``task-``)."""
    return Rule(rule_id, secret, LEFT, RIGHT if right else "", hints, check, cues)


# A PEM block: closed (any safe character up to END), or open: base64 lines, joined by white space, by ``\n`` escapes,
# or by the quotes and commas of a list of lines in source code (long lines only: a JSON key is not one).
_BEGIN = r"-----?[ +]?BEGIN(?:[A-Z0-9 +]|%20)*PRIVATE(?:[ +]|%20)KEY(?:(?:[ +]|%20)BLOCK)? ?-----?"
_END = r"-----?[ +]?END(?:[A-Z0-9 +]|%20)*PRIVATE(?:[ +]|%20)KEY(?:(?:[ +]|%20)BLOCK)? ?-----?"
_JOIN = r"""(?:\s|\\+[nrt]|\\*["'`]|[,+.])+"""
# what a tool puts before each line it shows: a number and a sign (``12→``, ``12:``, ``12 |``), ``> ``, ``# ``, ``- ``
_MARGIN = r"(?:[ \t]*(?:[0-9]{1,6}(?:→|\\+u2192|\\*t|[ \t]*[:|])|[>#*|+-])[ \t]*)*"
_NEXT = rf"(?:(?:{GAP}|%0[AaDd])+{_MARGIN})"
_PEM = (
    rf"{_BEGIN}(?:[A-Za-z0-9+/=,:.()@_\s\\%→|>#*-]*?{_END}"
    rf"|{_NEXT}*(?:[A-Z][A-Za-z-]+: [A-Za-z0-9,. -]+{_NEXT}+)*{B64}{{16,}}={{0,2}}(?:{_NEXT}+{B64}{{16,}}={{0,2}})*"
    rf"(?:{_NEXT}+{B64}+={{1,2}})?"
    rf"|(?:{_JOIN}{B64}{{40,}}={{0,2}})+(?:(?:{_JOIN}{B64}+={{0,2}})?{_JOIN}{_END})?)"
)

BLOCKS: tuple[Rule, ...] = (
    own("private-key", _PEM, "PRIVATE KEY", "PRIVATE%20KEY", "PRIVATE+KEY", check="pem"),
    Rule(
        "putty-private-key",
        rf"{B64}{{16,}}={{0,2}}(?:{_NEXT}+{B64}{{8,}}={{0,2}})*",
        rf"Private-Lines: ?[0-9]+{_NEXT}+",
        hints=("Private-Lines",),
    ),
    own("age-secret-key", r"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Za-z]{20,}", "AGE-SECRET-KEY-"),
)

WEBHOOKS: tuple[Rule, ...] = (
    Rule(
        "slack-webhook",
        r"(?:[A-Za-z0-9_/+-]|\\+/|%2[Ff]){20,}",
        rf"hooks\.slack\.com{SLASH}(?:services|workflows|triggers){SLASH}",
        hints=("hooks.slack.com",),
    ),
    Rule(
        "discord-webhook",
        rf"{WORD}{{20,}}",
        rf"discord(?:app)?\.com{SLASH}api{SLASH}(?:v[0-9]+{SLASH})?webhooks{SLASH}[0-9]+{SLASH}",
        hints=("discord.com", "discordapp.com"),
    ),
    Rule(
        "teams-webhook",
        r"(?:[A-Za-z0-9@/_-]|\\+/|%2[Ff]|%40){30,}",
        rf"webhook\.office\.com{SLASH}webhookb2{SLASH}",
        hints=("webhook.office.com",),
    ),
    Rule("azure-sas", r"[A-Za-z0-9%+/_-]{20,}={0,2}", r"(?:[?&;]|\\u0026)sig=", hints=("sig=",)),
    Rule("aws-presigned", r"[0-9a-f]{64}", rf"X-Amz-Signature{EQUALS}", hints=("X-Amz-Signature",)),
    Rule("aws-presigned", r"[A-Za-z0-9%+/=_-]{20,}", rf"X-Amz-Security-Token{EQUALS}", hints=("X-Amz-Security-Token",)),
)

# Prefixes of the vendors. The lengths are lower bounds, well under the real ones: a clipped token is still a secret.
TOKENS: tuple[Rule, ...] = (
    own("github-token", r"gh[pousr]_[A-Za-z0-9_]{20,}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    own("github-fine-grained-pat", r"github_pat_[A-Za-z0-9_]{20,}", "github_pat_"),
    word(
        "gitlab-token",
        rf"gl(?:pat|dt|rt|rtr|soat|ptt|ft|imt|agent|cbt|oas|ffct|wt)-{WORD}{{20,}}(?:\.[0-9a-z]{{2,10}})*",
        *("glpat-", "gldt-", "glrt-", "glrtr-", "glsoat-", "glptt-", "glft-"),
        *("glimt-", "glagent-", "glcbt-", "gloas-", "glffct-", "glwt-"),
    ),
    own("gitlab-runner-registration", rf"GR1348941{WORD}{{20,}}", "GR1348941"),
    word("anthropic-api-key", rf"sk-ant-{WORD}{{20,}}", "sk-ant-"),
    word("openrouter-api-key", r"sk-or-v[0-9]-[A-Za-z0-9]{20,}", "sk-or-"),
    word("langfuse-secret-key", r"sk-lf-[A-Za-z0-9-]{20,}", "sk-lf-"),
    word(
        "openai-api-key",
        rf"sk-(?:proj|svcacct|service|admin|None)-{WORD}{{20,}}",
        "sk-",
        check="digit",
        cues=("sk-[a-zN]{4}",),
    ),
    word("openai-api-key", rf"sk-{WORD}*T3BlbkFJ[A-Za-z0-9]{{10,}}", "T3BlbkFJ"),
    word("openai-api-key", r"sk-[A-Za-z0-9]{20,}", "sk-", check="mixed", cues=("sk-[A-Za-z0-9]{20}",)),
    word("mapbox-secret-token", rf"sk\.eyJ{WORD}{{20,}}\.{WORD}{{10,}}", "sk.eyJ"),
    word("slack-token", r"xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}", "xox", check="digit"),
    word("slack-app-token", r"xapp-[0-9]-[A-Za-z0-9-]{20,}", "xapp-"),
    word("stripe-api-key", r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,}", "k_live_", "k_test_", "k_prod_"),
    word("stripe-webhook-secret", rf"whsec_{B64}{{20,}}={{0,2}}", "whsec_"),
    word("elevenlabs-api-key", r"sk_[0-9a-f]{40,}", "sk_", cues=("sk_[0-9a-f]{20}",)),
    word("aws-access-key-id", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}", "AKIA", "ASIA", "ABIA", "ACCA", right=True),
    word("aws-access-key-id", r"A3T[A-Z0-9]{17}", "A3T", check="digit", right=True, cues=("A3T[A-Z0-9]{17}",)),
    word("aws-session-token", rf"(?:FwoGZXIvYXdz|IQoJb3JpZ2lu){B64}{{20,}}={{0,2}}", "FwoGZXIvYXdz", "IQoJb3JpZ2lu"),
    word("aws-bedrock-key", rf"(?:ABSK|bedrock-api-key-){B64}{{60,}}={{0,2}}", "ABSK", "bedrock-api-key-"),
    word("google-api-key", rf"AIza{WORD}{{30,}}", "AIza"),
    own("google-oauth-secret", rf"GOCSPX-{WORD}{{20,}}", "GOCSPX-"),
    word("google-oauth-token", r"ya29\.[A-Za-z0-9._-]{20,}", "ya29."),
    word("google-refresh-token", rf"1//0{WORD}{{30,}}", "1//0"),
    word(
        "azure-ad-client-secret",
        r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{30,}",
        "Q~",
        cues=("Q~[A-Za-z0-9_~.-]{30}",),
    ),
    word("azure-devops-pat", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}", "AZDO", right=True),
    word("npm-token", r"npm_[A-Za-z0-9]{30,}", "npm_", check="mixed"),
    own("pypi-token", rf"pypi-Ag[A-Za-z0-9]{{2}}{WORD}{{20,}}", "pypi-Ag"),
    word("rubygems-token", r"rubygems_[0-9a-f]{32,}", "rubygems_"),
    word("crates-token", r"cio[A-Za-z0-9]{32}", "cio", check="mixed", right=True, cues=("cio[A-Za-z0-9]{32}",)),
    word("nuget-token", r"oy2[a-z0-9]{43}", "oy2", right=True, cues=("oy2[a-z0-9]{30}",)),
    word("clojars-token", r"CLOJARS_[a-z0-9]{40,}", "CLOJARS_"),
    own("docker-token", rf"dckr_(?:pat|oat)_{WORD}{{20,}}", "dckr_"),
    word("twilio-api-key", r"SK[0-9a-f]{32}", "SK", right=True, cues=("SK[0-9a-f]{30}",)),
    Rule(
        "twilio-auth-token",
        r"[0-9a-f]{32}",
        rf"AC[0-9a-f]{{32}}{QUOTE}?[:, ]+{QUOTE}?",
        EDGE,
        ("AC",),
        "",
        (r"AC[0-9a-f]{32}",),
    ),
    word(
        "sendgrid-api-key", rf"SG\.{WORD}{{16,}}\.{WORD}{{16,}}", "SG.", check="digit", cues=(r"SG\.[A-Za-z0-9_-]{16}",)
    ),
    word(
        "mailgun-api-key",
        r"(?:pub)?key-[0-9a-zA-Z]{32}",
        "key-",
        check="digit",
        right=True,
        cues=("key-[0-9a-zA-Z]{32}",),
    ),
    word(
        "mailgun-api-key",
        r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}",
        *(f"-{digit}" for digit in "0123456789abcdef"),
        right=True,
        cues=("-[0-9a-f]{8}-[0-9a-f]{8}",),
    ),
    word("mailchimp-api-key", r"[0-9a-z]{32}-us[0-9]{1,2}", "-us", right=True, cues=("-us[0-9]",)),
    word("brevo-api-key", r"x(?:keysib|smtpsib)-[0-9a-f]{40,}(?:-[A-Za-z0-9]{10,})?", "xkeysib-", "xsmtpsib-"),
    word(
        "resend-api-key",
        r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}",
        "re_",
        check="mixed",
        cues=("re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20}",),
    ),
    word(
        "huggingface-token",
        r"(?:hf_|api_org_)[A-Za-z0-9]{30,}",
        "hf_",
        "api_org_",
        check="mixed",
        cues=("hf_[A-Za-z0-9]{20}", "api_org_"),
    ),
    word("replicate-token", r"r8_[A-Za-z0-9]{30,}", "r8_", check="mixed", cues=("r8_[A-Za-z0-9]{20}",)),
    word("groq-api-key", r"gsk_[A-Za-z0-9]{20,}", "gsk_", check="mixed"),
    word("xai-api-key", rf"xai-[A-Za-z0-9_]{{20,}}{WORD}*", "xai-", check="mixed"),
    word("perplexity-api-key", r"pplx-[A-Za-z0-9]{20,}", "pplx-"),
    word("nvidia-api-key", rf"nvapi-{WORD}{{20,}}", "nvapi-"),
    word("tavily-api-key", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,}", "tvly-"),
    word("pinecone-api-key", r"pcsk_[A-Za-z0-9_]{30,}", "pcsk_"),
    word("langsmith-api-key", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}", "lsv2_"),
    word("together-api-key", rf"tgp_v1_{WORD}{{30,}}", "tgp_v1_"),
    word("runpod-api-key", r"rpa_[A-Z0-9]{30,}", "rpa_"),
    word("e2b-api-key", r"e2b_[0-9a-f]{30,}", "e2b_"),
    word("digitalocean-token", r"do[opr]_v1_[A-Za-z0-9]{20,}", "doo_v1_", "dop_v1_", "dor_v1_"),
    word("linear-api-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{20,}", "lin_api_", "lin_oauth_"),
    word("notion-token", r"ntn_[A-Za-z0-9]{20,}", "ntn_", check="digit"),
    word("notion-token", r"secret_[A-Za-z0-9]{40,}", "secret_", check="mixed"),
    word(
        "databricks-token",
        r"(?:dapi|dkea|dose)[0-9a-f]{32}(?:-[0-9])?",
        "dapi",
        "dkea",
        "dose",
        right=True,
        cues=("dapi[0-9a-f]{32}", "dkea[0-9a-f]{32}", "dose[0-9a-f]{32}"),
    ),
    word("shopify-token", r"shp(?:at|ss|ca|pa|tka)_[A-Za-z0-9]{20,}", *(f"shp{k}_" for k in ("at", "ss", "ca", "pa"))),
    word("square-token", rf"sq0(?:atp|csp)-{WORD}{{20,}}", "sq0atp-", "sq0csp-"),
    word("square-token", rf"EAAA{WORD}{{60,}}", "EAAA", check="digit"),
    word("facebook-token", r"EAACEdEose0cBA[0-9A-Za-z]{10,}", "EAACEdEose0cBA"),
    word("facebook-token", r"EAA[0-9A-Za-z]{90,}", "EAA", check="digit", cues=("EAA[0-9A-Za-z]{90}",)),
    word("braintree-token", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}", "access_token$"),
    word(
        "doppler-token",
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{30,}",
        "dp.",
        cues=(r"dp\.[a-z]{2,5}\.[A-Za-z0-9]{30}",),
    ),
    word("vault-token", rf"hv[bsr]\.{WORD}{{20,}}", "hvb.", "hvs.", "hvr."),
    word("terraform-token", rf"[A-Za-z0-9]{{10,20}}\.atlasv1\.{WORD_EQ}{{30,}}", ".atlasv1."),
    word("grafana-token", rf"glc_{B64}{{30,}}={{0,2}}", "glc_"),
    word("grafana-token", r"glsa_[A-Za-z0-9]{20,}(?:_[A-Fa-f0-9]{8})?", "glsa_"),
    word(
        "newrelic-key",
        r"(?:NRAK|NRII|NRAA|NRRA|NRJS)-[A-Za-z0-9_-]{19,}",
        *(f"NR{k}-" for k in ("AK", "II", "AA", "RA", "JS")),
    ),
    word("newrelic-key", r"[0-9a-f]{36}NRAL", "NRAL", right=True),
    word("sentry-token", rf"sntry[su]_{B64_URL}{{20,}}", "sntrys_", "sntryu_"),
    Rule("telegram-bot-token", rf"[0-9]{{8,10}}(?::|%3A)AA{WORD}{{30,}}", f"(?:{LEFT}|bot)", "", (":AA", "%3AAA")),
    word(
        "discord-bot-token",
        rf"(?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){{5,}}[A-Za-z0-9]{{0,4}}\.{WORD}{{6}}\.{WORD}{{25,}}",
        *(a + b for a in "MNO" for b in "DTjz"),
        cues=("(?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){4}",),
    ),
    word("heroku-api-key", rf"HRKU-{WORD}{{20,}}", "HRKU-"),
    word("flyio-token", rf"fo1_{WORD}{{30,}}", "fo1_"),
    word("flyio-token", rf"fm[12][ar]?_(?:{B64_URL}|,|%2C){{40,}}", "fm1", "fm2"),
    word("atlassian-token", rf"AT(?:ATT|CTT)3{WORD_EQ}{{20,}}", "ATATT3", "ATCTT3"),
    word("trello-token", r"ATTA[0-9a-f]{64}", "ATTA"),
    word("bitbucket-token", r"ATBB[A-Za-z0-9]{20,}", "ATBB", check="mixed"),
    word("figma-token", rf"fig[doru]_{WORD}{{20,}}", "figd_", "figo_", "figr_", "figu_"),
    word("postman-api-key", r"PMA[KT]-[A-Za-z0-9-]{20,}", "PMAK-", "PMAT-"),
    word("pulumi-token", r"pul-[0-9a-f]{30,}", "pul-"),
    word("planetscale-token", rf"pscale_(?:tkn|pw|oauth)_{WORD_EQ}{{20,}}", "pscale_"),
    word("supabase-token", rf"(?:sbp_(?:[a-z0-9]+_)?[0-9a-f]{{30,}}|sb_secret_{WORD}{{20,}})", "sbp_", "sb_secret_"),
    word(
        "vercel-token",
        r"vc[aikpr]_[A-Za-z0-9]{20,}",
        *(f"vc{k}_" for k in "aikpr"),
        check="mixed",
        cues=("vc[aikpr]_[A-Za-z0-9]{20}",),
    ),
    word("vercel-blob-token", r"vercel_blob_rw_[A-Za-z0-9_]{20,}", "vercel_blob_rw_"),
    word("neon-api-key", r"napi_[a-z0-9]{40,}", "napi_", check="digit"),
    word("netlify-token", r"nfp_[A-Za-z0-9]{30,}", "nfp_", check="mixed"),
    word("onepassword-token", rf"ops_eyJ{B64_URL}{{40,}}", "ops_eyJ"),
    word(
        "onepassword-secret-key",
        r"A3-[A-Z0-9]{6}-[A-Z0-9]{5,6}-?[A-Z0-9]{5,6}(?:-[A-Z0-9]{5}){3}",
        "A3-",
        cues=("A3-[A-Z0-9]{6}-",),
    ),
    Rule("okta-token", rf"{WORD}{{30,}}", "SSWS ", "", ("SSWS ",), "digit"),
    word("airtable-token", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}", "pat", cues=(r"pat[A-Za-z0-9]{14}\.[0-9a-f]{20}",)),
    word("cloudflare-token", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}", "v1.0-"),
    word("contentful-token", rf"CFPAT-{WORD}{{30,}}", "CFPAT-"),
    word("dropbox-token", rf"sl\.(?:u\.)?{WORD}{{100,}}", "sl.", cues=(r"sl\.(?:u\.)?[A-Za-z0-9_-]{60}",)),
    word("dynatrace-token", r"dt0[a-z][0-9]{2}\.[A-Z2-7]{24}\.[A-Z2-7]{50,}", "dt0", cues=(r"dt0[a-z][0-9]",)),
    word("easypost-key", r"EZ[AT]K[A-Za-z0-9]{50,}", "EZAK", "EZTK"),
    word("flutterwave-key", r"FLWSECK(?:_TEST)?-[A-Za-z0-9-]{12,}", "FLWSECK"),
    word("hubspot-token", r"pat-(?:na|eu|ap)[0-9]-[0-9a-f-]{36}", "pat-", cues=("pat-(?:na|eu|ap)[0-9]",)),
    word("tailscale-key", r"tskey-[a-z]+-[A-Za-z0-9-]{16,}", "tskey-"),
    word("openshift-token", rf"sha256~{WORD}{{40,}}", "sha256~"),
    word("prefect-token", r"pn[ub]_[A-Za-z0-9]{30,}", "pnu_", "pnb_", check="digit"),
    word("readme-token", r"rdme_[a-z0-9]{60,}", "rdme_"),
    word("sonar-token", r"sq[apu]_[0-9a-f]{40}", "sqa_", "sqp_", "squ_", right=True),
    word("sourcegraph-token", r"sgp_(?:[a-zA-Z0-9]+_)?[0-9a-fA-F]{40}", "sgp_", right=True),
    word("snyk-token", rf"snyk_[a-z]{{3}}\.[0-9a-z]{{8}}\.{WORD}{{20,}}", "snyk_"),
    word("artifactory-token", r"(?:AKCp[0-9A-Za-z]{60,}|cmVmd[0-9A-Za-z]{50,})", "AKCp", "cmVmd"),
    word("buildkite-token", r"bkua_[0-9a-f]{40}", "bkua_", right=True),
    word("circleci-token", r"CCIP(?:AT|RJ)_[A-Za-z0-9]+_[0-9a-f]{40}", "CCIPAT_", "CCIPRJ_", right=True),
    word("posthog-key", r"phx_[A-Za-z0-9]{30,}", "phx_", check="mixed"),
    word("alibaba-access-key", r"LTAI[A-Za-z0-9]{16,}", "LTAI"),
    word("typeform-token", rf"tfp_{WORD_EQ}{{40,}}", "tfp_", check="digit"),
    word("adafruit-key", r"aio_[A-Za-z0-9]{28}", "aio_", check="mixed", right=True),
    word("adobe-client-secret", r"p8e-[A-Za-z0-9]{32}", "p8e-", right=True),
    word(
        "authress-key",
        rf"(?:sc|ext|scauth|authress)_[a-z0-9]{{5,30}}\.[a-z0-9]{{4,6}}\.acc[_-][a-z0-9-]{{10,32}}\.{B64_URL}{{30,}}",
        *(".acc_", ".acc-"),
    ),
    word("clickhouse-key", r"4b1d[A-Za-z0-9]{38}", "4b1d", check="mixed", right=True, cues=("4b1d[A-Za-z0-9]{38}",)),
    word("defined-networking-key", rf"dnkey-{WORD_EQ}{{26}}-{WORD_EQ}{{30,}}", "dnkey-"),
    word(
        "dropbox-token",
        rf"[a-z0-9]{{11}}A{{10}}{WORD_EQ}{{43,}}",
        "A" * 10,
        check="digit",
        cues=("A" * 10 + "[A-Za-z0-9_=%-]{40}",),
    ),
    word("duffel-token", rf"duffel_(?:test|live)_{WORD_EQ}{{30,}}", "duffel_"),
    word(
        "facebook-token",
        rf"[0-9]{{15,16}}(?:\||%7C){WORD}{{27,}}",
        "|",
        "%7C",
        check="mixed",
        cues=(rf"\|{WORD}{{27}}", "%7C"),
    ),
    word("frameio-token", rf"fio-u-{WORD_EQ}{{40,}}", "fio-u-"),
    word(
        "harness-token",
        rf"[ps]at\.{WORD}{{22}}\.[A-Za-z0-9]{{24}}\.[A-Za-z0-9]{{20}}",
        "at.",
        cues=(rf"at\.{WORD}{{22}}\.",),
    ),
    word("infracost-key", r"ico-[A-Za-z0-9]{32}", "ico-", check="digit", right=True),
    word("intra42-secret", r"s-s4t2(?:ud|af)-[0-9a-f]{60,}", "s-s4t2"),
    word(
        "lob-key",
        r"(?:live|test)_(?:pub_[0-9a-f]{31}|[0-9a-f]{35})",
        *("live_", "test_"),
        right=True,
        cues=("live_(?:pub_)?[0-9a-f]{31}", "test_(?:pub_)?[0-9a-f]{31}"),
    ),
    word("maxmind-key", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk", "_mmk"),
    word("octopus-key", r"API-[A-Z0-9]{26}", "API-", check="digit", right=True, cues=("API-[A-Z0-9]{26}",)),
    word("plaid-token", r"access-(?:sandbox|development|production)-[0-9a-f-]{36}", "access-"),
    word("scalingo-token", rf"tk-us-{WORD}{{40,}}", "tk-us-"),
    word("settlemint-token", r"sm_[aps]at_[A-Za-z0-9]{16,}", *(f"sm_{k}at_" for k in "aps"), check="mixed"),
    word("shippo-token", r"shippo_(?:live|test)_[0-9a-fA-F]{40}", "shippo_"),
    word("vault-token", r"s\.[A-Za-z0-9]{24}", "s.", check="dense", right=True, cues=(r"s\.[A-Za-z0-9]{24}",)),
    word(
        "yandex-token",
        rf"t1\.{WORD}+={{0,2}}\.{WORD}{{86}}={{0,2}}",
        "t1.",
        cues=(rf"t1\.{WORD}+={{0,2}}\.{WORD}{{60}}",),
    ),
    word("yandex-key", rf"AQVN{WORD}{{35,}}", "AQVN", check="mixed"),
    word("yandex-key", rf"YC{WORD}{{38}}", "YC", check="dense", cues=(rf"YC{WORD}{{38}}",)),
    own("grafana-api-key", rf"eyJrIjoi{B64}{{30,}}", "eyJrIjoi"),
    own("jwt", rf"ZXlK{B64}{{60,}}", "ZXlK"),
    own("jwt", rf"eyJ{WORD}{{8,}}\.ey{WORD}{{8,}}\.{WORD}*", "eyJ"),
    own("jwt", rf"eyJ{WORD}{{16,}}(?:\.{WORD}*){{4}}", "eyJ"),
)
