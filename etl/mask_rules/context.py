"""Which values are secret because of what stands before them: a URL, a header, an option, a telling name?

Specific surroundings come first (``CONTEXT``), assignments to a telling name last (``NAMED``), so that a secret gets
the most specific name there is. No secret pattern crosses the end of a JSON string: none matches a bare double quote,
and a backslash only together with what it escapes.
"""

from __future__ import annotations

from etl.mask_rules.formats import B64, EDGE, EQUALS, GAP, LEFT, QUOTE, WORD, Rule, own


def _cases(*words: str) -> tuple[str, ...]:
    return tuple(form for word in words for form in (word, word.upper(), word.capitalize()))


def _any(*words: str) -> str:
    return "(?:" + "|".join(_cases(*words)) + ")"


def _followed(what: str, *words: str) -> tuple[str, ...]:
    return tuple(form + what for form in _cases(*words))


def _near(
    rule_id: str, before: str, secret: str, check: str, *hints: str, after: str = "", cues: tuple[str, ...] = ()
) -> Rule:
    """A value known by what stands before it."""
    return Rule(rule_id, secret, before, after, hints, check, cues)


_PLAIN = r"""[^\s"'`\\<>$]"""
_NAME_CHARS = "[A-Za-z0-9_.%-]"
# One command, over ``\``-continued lines (in JSON: two backslashes and ``\n``) but not past a line end, pipe or ``;``.
_ARGS = r"""(?-u:\b)(?:[^\n\r\\|;]|\\\r?\n|\\\\\\n|\\["'$\\])*?[\s"',]"""
_SCHEME = r"(?i:bearer|token|bot|apikey|api-key|key|negotiate|github|sso-key)"
_FIELD = r"(?i:server|host|data source|addr(?:ess)?|uid|user(?:name)?|user id|database|initial catalog|port|endpoint)"
_FIELDS = r"""(?:[A-Za-z ]+=[^;"'`\\\n]*;[ ]?)*"""
_COOKIE = rf"""{_NAME_CHARS}+=[^\s;"'`\\,<>]*"""
_FLAG = r"(?i:password|passwd|passphrase|pass|pwd|token|secret|api-?key|access-?key|secret-?key|private-?key|auth)"
_SLASHES = r"(?:\\*/){2}"
_USER = r"""[^\s/?#:@"'`<>\\(){}\[\]]*"""
_WORD_IN_URL = r"""[^\s/?#"'`<>\\]+"""

CONTEXT: tuple[Rule, ...] = (
    _near(
        "url-password",
        rf"[A-Za-z][A-Za-z0-9+.-]*:{_SLASHES}{_USER}:",
        _WORD_IN_URL,
        "url",
        "://",
        ":\\",
        after=r"@[A-Za-z0-9\[{$%_]",
        cues=(rf"://{_USER}:{_WORD_IN_URL}@", rf":\\+/\\+/{_USER}:{_WORD_IN_URL}@"),
    ),
    _near(
        "url-password",
        r"[A-Za-z][A-Za-z0-9+.-]*%3[Aa](?:%2[Ff]){2}(?:[A-Za-z0-9_.~-]|%[0-35-9A-Fa-f][0-9A-Fa-f])*?%3[Aa]",
        r"[A-Za-z0-9_.~!*+%-]+",
        "url",
        *("%3A%2F%2F", "%3a%2f%2f"),
        after=r"%40[A-Za-z0-9]",
    ),
    _near(
        "url-token",
        rf"https?:{_SLASHES}",
        rf"{WORD}{{20,}}",
        "random",
        "://",
        ":\\",
        after=r"@[A-Za-z0-9]",
        cues=(f"://{WORD}{{20,}}@", rf":\\+/\\+/{WORD}{{20,}}@"),
    ),
    _near(
        "authorization-header",
        rf"(?i:authorization){QUOTE}?[ \t]*(?:=>|[:=,])[ \t]*{QUOTE}?{_SCHEME}(?:[ \t]+|%20)(?:token=)?{QUOTE}?",
        r"[A-Za-z0-9._~+/=:|-]{8,}",
        "header",
        *_cases("authorization"),
        cues=_followed(rf"""["'`\\ \t]*[:=,]>?["'`\\ \t]*{_SCHEME}""", "authorization"),
    ),
    _near(
        "basic-auth",
        rf"{LEFT}(?i:basic)[ \t]+",
        rf"{B64}{{8,}}={{0,2}}",
        "basic",
        *_cases("basic"),
        cues=_followed(rf"[ \t]+{B64}{{8}}", "basic"),
    ),
    _near(
        "docker-auth",
        rf"{QUOTE}_?auth{QUOTE}[ ]*:[ ]*{QUOTE}",
        rf"{B64}{{8,}}={{0,2}}",
        "basic",
        "auth",
        after=QUOTE,
        cues=(r"""auth["'\\]+ ?:""",),
    ),
    _near(
        "bearer-token",
        rf"{LEFT}(?i:bearer)(?:[ \t]+|%20)",
        r"[A-Za-z0-9._~+/-]{16,}={0,2}",
        "random",
        *_cases("bearer"),
        cues=_followed(r"(?:[ \t]|%20)+[A-Za-z0-9._~+/-]{16}", "bearer"),
    ),
    _near(
        "set-cookie",
        rf"(?i:set-cookie){QUOTE}?[ \t]*[:,][ \t]*\[?{QUOTE}?{_NAME_CHARS}+=",
        r"""[^\s;"'`\\,<>]{8,}""",
        "header",
        *_cases("cookie"),
        cues=_followed(rf"""["'`\\ \t]*[:,= ][\["'`\\ \t]*{_NAME_CHARS}+=""", "cookie"),
    ),
    _near(
        "cookie",
        rf"(?:{LEFT}(?i:cookie){QUOTE}?[ \t]*[:,][ \t]*{QUOTE}?|--cookie[ =]{QUOTE}?)",
        rf"{_COOKIE}(?:;[ ]?{_COOKIE})*",
        "cookie",
        *_cases("cookie"),
        cues=_followed(rf"""["'`\\ \t]*[:,= ][\["'`\\ \t]*{_NAME_CHARS}+=""", "cookie"),
    ),
    _near(
        "curl-user",
        rf"""{LEFT}curl{_ARGS}(?:-u|--user|--proxy-user|-U)(?:[ =]|{QUOTE},[ ]*)?{QUOTE}?[^\s:"'`\\<>$/]+:""",
        rf"{_PLAIN}{{3,}}",
        "url",
        "curl ",
    ),
    _near(
        "cli-password",
        rf"--(?:[A-Za-z0-9]+-)*{_FLAG}(?:=|[ \t]+|{QUOTE},\s*){QUOTE}?",
        r"""[^\s"'`\\|;&<>(){}\[\]$,-][^\s"'`\\|;&<>(){}]{5,}""",
        "cli",
        "--",
        cues=("--[A-Za-z0-9-]*" + _any("pass", "pwd", "token", "secret", "key", "auth"),),
    ),
    _near("cli-password", rf"{LEFT}sshpass[ \t]+-p[ \t]*{QUOTE}?", rf"{_PLAIN}{{3,}}", "url", "sshpass"),
    _near(
        "cli-password",
        rf"{LEFT}(?:mysql(?:dump|admin|import|sh)?|mariadb(?:-dump)?){_ARGS}-p{QUOTE}?",
        r"""[^\s"'`\\<>$|;&=-][^\s"'`\\<>$|;&]{5,}""",
        "cli",
        "mysql",
        "mariadb",
    ),
    _near(
        "cli-password",
        rf"{LEFT}(?:redis-cli{_ARGS}-a|(?:docker|podman|registry|oc|az|skopeo)[ ]login{_ARGS}-p|(?:un)?zip{_ARGS}-P)"
        rf"[ =]{QUOTE}?",
        rf"{_PLAIN}{{4,}}",
        "url",
        "redis-cli",
        " login",
        "zip ",
        cues=("redis-cli", r" login[ ][^\n]*-p", r" login \\", r"zip [^\n]*-P"),
    ),
    _near("cli-password", rf"-pass(?:in|out)?[ ]+{QUOTE}?pass:", rf"{_PLAIN}{{4,}}", "url", "pass:"),
    _near(
        "cli-password",
        rf"(?i:ConvertTo-SecureString(?:[ ]+-String)?)[ ]+{QUOTE}",
        rf"{_PLAIN}{{4,}}",
        "url",
        "SecureString",
        "securestring",
    ),
    _near(
        "sql-password",
        r"(?i:identified by|password)[ ]+\\*'",
        r"""[^\s"'\\]{4,}""",
        "url",
        *_cases("identified by", "password"),
        after=r"\\*'",
        cues=_followed(r"[ ]+\\*'", "identified by", "password"),
    ),
    _near(
        "netrc-password",
        rf"{LEFT}(?:machine{GAP}+[^\s\\]+|default){GAP}+login{GAP}+[^\s\\]+{GAP}+password{GAP}+",
        rf"{_PLAIN}{{3,}}",
        "url",
        "login",
        cues=(rf"login{GAP}+[^\s\\]+{GAP}+password",),
    ),
    _near(
        "connection-password",
        rf"""{_FIELD}[ ]?=[^;"'`\\\n]*;[ ]?{_FIELDS}(?i:password|pwd)[ ]?=[ ]?""",
        r"""[^;\s"'`\\<>]{3,}""",
        "url",
        *_cases("password", "pwd"),
        cues=_followed("[ ]?=", "password", "pwd"),
    ),
    _near(
        "connection-password",
        rf"{LEFT}(?i:password|pwd)=",
        r"""[^;\s"'`\\<>]{3,}""",
        "url",
        *_cases("password", "pwd"),
        after=rf";[ ]?{_FIELDS}{_FIELD}[ ]?=",
        cues=_followed("[ ]?=", "password", "pwd"),
    ),
    _near(
        "azure-account-key",
        rf"(?i:AccountKey|SharedAccessKey|SharedSecretValue){EQUALS}",
        rf"{B64}{{20,}}={{0,2}}",
        "",
        *("Key=", "Value=", "Key%3D", "Value%3D"),
    ),
    _near(
        "npmrc-auth",
        rf"{LEFT}(?:_authToken|_auth|_password)[ ]?{EQUALS}[ ]?{QUOTE}?",
        r"""[^\s"'`\\$<>{}]{6,}""",
        "header",
        "_auth",
        "_password",
    ),
    own(
        "password-hash",
        r"\$(?:2[abxy]|5|6|y|apr1|argon2i?d?)\$[./A-Za-z0-9$=,+]{20,}",
        "$",
        cues=(r"\$(?:2[abxy]|5|6|y|apr1|argon2i?d?)\$[./A-Za-z0-9$=,+]{8}",),
    ),
)

# ---- assignments to a telling name: last, so that a known format is called by its own name
_LOGIN = r"(?:password|passwd|passphrase|passcode|pwd|(?-u:\b|_)pass|_pw)"
_KEY = (
    r"(?:token|secret|credentials?|auth|authorization|api[_-]?key|private[_-]?key|encryption[_-]?key|subscription[_-]?key"
    r"|(?:access|secret|signing|auth|account|master|service|session|license|webhook|deploy|client|shared)[_-]?key)"
)
_LOGIN_HINTS = _cases("pass", "pwd", "_pw")
_KEY_HINTS = _cases("token", "secret", "cred", "auth", "key")
_STAGE = r"(?:[_-]?(?:value|prod|production|dev|test|staging|live|old|new|[0-9]{1,2}))?"
# ``=``, ``:=``, ``=>``, ``["x"] =``, ``: str =``, ``" value="``, and the ``value`` beside a ``name``
_TYPE = r"(?:&?[A-Za-z][A-Za-z0-9_.\[\] |?]*=[ ]?)?"
_EQ = rf"(?:{QUOTE}\]?)?[ \t]*(?::=|=>|[:=]|%3[Dd])[ \t]*{_TYPE}"
_ASSIGN = rf"(?:{_EQ}|{QUOTE}?[ ]*,?(?:\s|\\n)*{QUOTE}?(?i:value){QUOTE}?[ ]?[:=][ ]?)"
NAMED_CUE = (
    _any("pass", "pwd", "_pw", "token", "secret", "cred", "auth", "key") + "[A-Za-z0-9_-]*"
    r"(?:[^A-Za-z0-9:=]*(?:&?quot;|n?[^A-Za-z0-9:=]*(?i:value)[^A-Za-z0-9:=]*)?(?:[:=]+>?|%3[Dd])"
    + rf"[ \t]*{_TYPE}|>)"
    r"""(?:[\\"'`& ]|quot;)*(?:[^\s"'`]|\\["'`])*[0-9!@#$%^&*?+~|]"""
    r"""|PASS[A-Z]*[A-Z0-9_]*=[\\"']*[^\s"'`\\]{6}|(?:pass|Pass|PASS)[a-z]*>[^\s<]{6}"""
)
_STRUCTURE = r",:\]})"  # what follows a closing quote in JSON: a value never starts so, or we hold the wrong quote
_DEEP = r"""(?:\\{4,}["'`]|&quot;)"""
_VALUE_FORMS = (
    ('"', rf"""[^\s"\\{_STRUCTURE}](?:[^\s"\\]|\\[^\s]){{7,}}""", '"', "value"),
    ("['`]", rf"""[^\s"'`\\{_STRUCTURE}](?:[^\s"'`\\]|\\[^\s]){{7,}}""", "['`]", "value"),
    (r"""\\["'`]""", rf"""[^\s"'\\{_STRUCTURE}](?:[^\s"'`\\]|\\{{2,}}[^\s\\]){{7,}}""", r"""\\["'`]""", "value"),
    (
        r"""\\{3}["'`]""",
        rf"""[^\s"'\\{_STRUCTURE}](?:[^\s"'`\\]|\\{{4,}}[^\s\\]){{7,}}""",
        r"""\\{3}["'`]""",
        "value",
    ),
    (_DEEP, rf"""[^\s"'\\{_STRUCTURE}&][^\s"'`\\&]{{7,}}""", _DEEP, "value"),
    (
        rf"{QUOTE}?",
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
    before = rf"{LEFT}[A-Z0-9_]*{name}(?:_(?:PROD|PRODUCTION|DEV|TEST|STAGING|LIVE|[0-9]+))?={QUOTE}?"
    return Rule(rule_id, r"""[^\s"'`\\]{6,}""", before, "", hints, check)


def _element(rule_id: str, name: str, hints: tuple[str, ...], check: str) -> Rule:
    """``<password>…</password>``."""
    return Rule(rule_id, r"""[^\s<>"\\]{6,}""", rf"<[A-Za-z0-9_.:-]*(?i:{name})>", r"<\\*/", hints, check)


_ENV_LOGIN = r"(?:PASSWORD|PASSWD|PASSPHRASE|PASS|PWD)"
_ENV_KEY = r"(?:SECRET|TOKEN|CREDENTIALS?|AUTH|API_?KEY|(?:ACCESS|SECRET|PRIVATE|SIGNING|ENCRYPTION|MASTER)_?KEY)"
_HEADER = r"(?i:x-(?:[a-z]+-)*(?:key|token|secret|auth)|private-token|job-token|deploy-token|api-key)"

NAMED: tuple[Rule, ...] = (
    _near(
        "aws-secret-access-key",
        rf"(?i:(?:aws|secret)[a-z_.-]*key){_ASSIGN}{QUOTE}?",
        r"[A-Za-z0-9/+]{40,}={0,2}",
        "digit",
        *_cases("key"),
    ),
    _near(
        "datadog-key",
        rf"(?i:(?:dd|datadog)[_-]?(?:api|app|application)[_-]?key){_ASSIGN}{QUOTE}?",
        r"[0-9a-f]{32,40}",
        "",
        *_cases("key"),
        after=EDGE,
    ),
    _near(
        "api-key-header",
        rf"{LEFT}{_HEADER}{QUOTE}?[ \t]*(?:=>|[:,])[ \t]*{QUOTE}?",
        r"""[^\s"'`\\,;<>(){}$\[\]]{8,}""",
        "value",
        *_KEY_HINTS,
    ),
    _environment("env-password", _ENV_LOGIN, _LOGIN_HINTS, "env"),
    _environment("env-secret", _ENV_KEY, _KEY_HINTS, "value"),
    _element("xml-password", _LOGIN, _LOGIN_HINTS, "env"),
    _element("xml-secret", _KEY, _KEY_HINTS, "value"),
    *_assignments("generic-password", _LOGIN, _LOGIN_HINTS, "password-"),
    *_assignments("generic-api-key", _KEY, _KEY_HINTS, ""),
)

# All of ``NAMED`` in one, for the few rows the cue leaves: a name, a sign of assignment, a value with a digit.
NAMED_CONFIRM = (
    rf"(?i:{_LOGIN}|{_KEY}|(?:aws|secret|dd|datadog)[a-z_.-]*key|x-[a-z-]*)"
    rf"{_STAGE}[A-Z0-9_]*(?:{_ASSIGN}|[ \t]*,[ \t]*|>)"
    rf"""(?:[\\"'`& ]|quot;)*(?:(?:[^\s"'`]|\\["'`])*[0-9!@#$%^&*?+~|]|[^\s"'`\\<]{{6}})"""
)
