"""Thirty honest mails in the style of 2026: ten programs that write mail, three texts; all invented.

`HONEST` has each mail's name, its bytes and the words that its reader sees.  `nbspam` must count
nearly all of these words, and block none of the mails (`evasion.py`).
"""
# ruff: noqa: E501 (lines of HTML are long)

import re
from typing import NamedTuple


class Letter(NamedTuple):
    """The text of a mail."""

    sender: str
    subject: str
    heading: str
    first: str
    second: str
    rows: tuple[tuple[str, str], ...]
    button: str
    footer: str


LETTERS = {
    "club": Letter(
        "Greta Holm <greta@rowing-club.example>",
        "Boathouse evening on Thursday",
        "The boathouse opens again",
        "Dear members, the new floor is dry and the racks are back in their places, so we meet on Thursday at seven to carry the boats inside.",
        "Please bring gloves and a lamp. Afterwards there will be soup in the kitchen, and Jonas shows the pictures that he took on the river last autumn.",
        (("Carrying the boats", "19:00"), ("Soup and pictures", "20:30")),
        "Tell us whether you come",
        "You receive this letter because you are a member of the rowing club in Lindby.",
    ),
    "order": Letter(
        "Papier & Leim <post@papier-leim.example>",
        "Your order 20431 has left our workshop",
        "It is on its way",
        "Hello Marta, we packed the notebooks this morning and gave them to the carrier. They should reach you on Monday or Tuesday.",
        "If a corner is bent, send us a photo by answering this mail. We replace what was damaged, and nobody has to return anything.",
        (("Notebook, ruled, two pieces", "EUR 18.00"), ("Postage", "EUR 4.90"), ("Total with tax", "EUR 22.90")),
        "Follow the parcel",
        "Papier & Leim, Hafengasse 12, Bremen. The invoice is attached to our first message.",
    ),
    "work": Letter(
        "Ines Duarte <ines@waterworks.example>",
        "Re: pump schedule for the northern basin",
        "Pump schedule, second draft",
        "Hi all, I moved the maintenance of pump four to the second week, because the spare bearing arrives later than the supplier had promised.",
        "Could somebody from operations check the night readings in the table below? The values from Sunday look too low, maybe the sensor was cleaned that day.",
        (("Sunday, basin north", "118 m3"), ("Monday, basin north", "164 m3"), ("Tuesday, basin north", "171 m3")),
        "Open the schedule",
        "Ines Duarte, operations planning, municipal waterworks",
    ),
}  # fmt: skip

# Placeholders: H heading, A and B paragraphs, R rows, L button, F footer.
_HEAD = '<!DOCTYPE html><html lang="en" xmlns:o="urn:schemas-microsoft-com:office:office"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title></title>'
_FILL = "&#847;&zwnj;&nbsp;" * 40
# Name -> a page, the pattern of a row in it.
PAGES = {
    "word": (
        '<html xmlns:v="urn:schemas-microsoft-com:vml" xmlns:w="urn:schemas-microsoft-com:office:word"><head><meta name=Generator content="Microsoft Word 15 (filtered medium)">'
        "<!--[if !mso]><style>v\\:* {behavior:url(#default#VML);} o\\:* {behavior:url(#default#VML);}</style><![endif]--><style><!--\n@font-face {font-family:Aptos; panose-1:2 11 0 4 2 2 2 2 2 4;}\n"
        "p.MsoNormal, li.MsoNormal {margin:0cm; font-size:11.0pt; font-family:\"Aptos\",sans-serif; mso-ligatures:standardcontextual; mso-fareast-language:EN-US;}\na:link, span.MsoHyperlink {mso-style-priority:99; color:#0563C1; text-decoration:underline;}\n"
        ".MsoChpDefault {mso-style-type:export-only;}\n@page WordSection1 {size:612.0pt 792.0pt; margin:72.0pt 72.0pt 72.0pt 72.0pt;}\ndiv.WordSection1 {page:WordSection1;}\n--></style></head>"
        '<body lang=EN-GB link="#0563C1" vlink="#954F72" style=\'word-wrap:break-word\'><div class=WordSection1><p class=MsoNormal><b><span lang=EN-US style=\'font-size:14.0pt;mso-fareast-font-family:"Times New Roman"\'>H<o:p></o:p></span></b></p>'
        "<p class=MsoNormal>A<o:p></o:p></p><p class=MsoNormal><o:p>&nbsp;</o:p></p><p class=MsoNormal style='mso-margin-top-alt:auto'>B<o:p></o:p></p><table class=MsoNormalTable border=0 style='border-collapse:collapse;mso-yfti-tbllook:1184'>R</table>"
        "<p class=MsoNormal><a href=\"https://files.example/plan\">L</a><o:p></o:p></p><div style='border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm'><p class=MsoNormal><span style='color:#595959;mso-themecolor:text1'>F</span></p></div></div></body></html>",
        "<tr style='mso-yfti-irow:0'><td width=300 style='width:225.0pt;padding:0cm 5.4pt 0cm 5.4pt'><p class=MsoNormal>{}<o:p></o:p></p></td><td><p class=MsoNormal>{}<o:p></o:p></p></td></tr>",
    ),
    "outlook": (
        '<html><head><meta http-equiv="Content-Type" content="text/html; charset=utf-8"><style type="text/css" style="display:none;"> P {margin-top:0;margin-bottom:0;} </style></head><body dir="ltr">'
        '<div class="elementToProof" style="font-family: Aptos, Aptos_EmbeddedFont, Calibri, sans-serif; font-size: 12pt; color: rgb(0, 0, 0);"><b>H</b></div><div class="elementToProof" style="font-size: 12pt; color: rgb(0, 0, 0);">A<br><br></div>'
        '<div style="color: rgb(36, 36, 36); background-color: rgb(255, 255, 255);">B</div><table style="border-collapse: collapse; width: 100%;">R</table><div id="appendonsend"></div><a href="https://files.example/plan" id="OWA1" class="OWAAutoLink" data-loopstyle="linkonly">L</a>'
        '<div id="Signature"><p style="margin: 0in; color: inherit; background-color: white;">F</p></div></body></html>',
        '<tr><td style="border: 1px solid rgb(171, 171, 171); width: 60%;"><div>{}</div></td><td>{}</td></tr>',
    ),
    "beefree": (
        f"{_HEAD}<!--[if mso]><xml><o:OfficeDocumentSettings><o:PixelsPerInch>96</o:PixelsPerInch></o:OfficeDocumentSettings></xml><![endif]--><style>* {{box-sizing:border-box}} body {{margin:0;padding:0}} a[x-apple-data-detectors] {{color:inherit!important}} #MessageViewBody a {{color:inherit}}"
        " p {line-height:inherit} .desktop_hide,.desktop_hide table {mso-hide:all;display:none;max-height:0px;overflow:hidden} .image_block img+div {display:none} sup,sub {font-size:75%;line-height:0} @media (max-width:620px) {.mobile_hide {display:none} .row-content {width:100%!important} .mobile_hide {min-height:0;max-height:0;max-width:0;overflow:hidden;font-size:0px}"
        ' .desktop_hide,.desktop_hide table {display:table!important;max-height:none!important}}</style></head><body class="body" style="background-color:#f6f3ee;margin:0;padding:0;-webkit-text-size-adjust:none;text-size-adjust:none"><table class="nl-container" width="100%" role="presentation" style="mso-table-lspace:0;mso-table-rspace:0;background-color:#f6f3ee;background-image:none;background-position:top left">'
        '<tr><td><table class="row row-1" align="center" width="100%" style="mso-table-lspace:0"><tr><td><table class="row-content stack" align="center" style="color:#000;width:600px;background-size:auto;border-radius:0"><tr><td class="column column-1" width="100%" style="vertical-align:top;padding:5px 0;border:0">'
        '<h1 style="margin:0;color:#1e0e4b;direction:ltr;font-family:Arial;font-size:38px;letter-spacing:normal;line-height:1.2;text-align:left"><span class="tinyMce-placeholder" style="word-break:break-word">H</span></h1><div style="color:#444a5b;font-size:16px;line-height:1.2;mso-line-height-alt:19px"><p style="margin:0">A</p><p style="margin:0">B</p></div><table>R</table>'
        '<div class="alignment" align="center"><a href="https://shop.example/p" style="background-color:#7747FF;border-radius:4px;color:#ffffff;display:inline-block;padding:5px 20px;mso-border-alt:none;word-break:keep-all"><span style="word-break:break-word;line-height:32px">L</span></a></div><p style="margin:0;color:#8a8a8a;font-size:12px">F</p></td></tr></table></td></tr></table></td></tr></table></body></html>',
        '<tr><td class="pad" style="padding:10px;color:#393d47;font-size:14px">{}</td><td style="text-align:right">{}</td></tr>',
    ),
    "mailchimp": (
        f"{_HEAD}<style>p{{margin:10px 0;padding:0}} table{{border-collapse:collapse}} img,a img{{border:0;height:auto;outline:none}} body,#bodyTable,#bodyCell{{height:100%;margin:0;padding:0;width:100%}} .mcnPreviewText{{display:none!important}} #outlook a{{padding:0}} .ReadMsgBody{{width:100%}} a[href^=tel]{{color:inherit}}"
        " .mceText,.mcnTextContent{word-break:break-word} #templateBody{background-color:#ffffff;background-image:none} @media only screen and (min-width:768px){.templateContainer{width:600px!important}} @media only screen and (max-width:480px){.mcnImage{width:100%!important} h1{font-size:22px!important}}</style></head>"
        f'<body><!--*|IF:MC_PREVIEW_TEXT|*--><!--[if !gte mso 9]><!----><span class="mcnPreviewText" style="display:none;font-size:0px;line-height:0px;max-height:0px;max-width:0px;opacity:0;overflow:hidden;visibility:hidden;mso-hide:all">News{_FILL}</span><!--<![endif]--><center><table id="bodyTable" width="100%" height="100%"><tr><td align="center" valign="top" id="bodyCell">'
        '<table class="templateContainer"><tr><td valign="top" id="templateBody"><table class="mcnTextBlock" style="min-width:100%"><tbody class="mcnTextBlockOuter"><tr><td class="mcnTextBlockInner" style="padding-top:9px"><!--[if mso]><table><tr><td width="600"><![endif]--><div class="mcnTextContent" style="padding:0 18px 9px"><h1>H</h1><p>A</p><p>B</p><table>R</table></div>'
        '</td></tr></tbody></table><a class="mcnButton" title="L" href="https://list.example/c" style="font-weight:bold;color:#FFFFFF;background:#2BAADF;text-decoration:none">L</a></td></tr><tr><td id="templateFooter" style="background:#333333 none no-repeat center/cover"><em style="color:#ffffff">F</em></td></tr></table></td></tr></table></center></body></html>',
        '<tr><td class="mcnTextContent" style="padding:9px">{}</td><td>{}</td></tr>',
    ),
    "github": (
        '<div style="display:flex; flex-direction:column"><h2 dir="auto">H</h2><p dir="auto">A</p><blockquote style="border-left:.25em solid var(--borderColor-default,#d1d9e0);color:var(--fgColor-muted,#59636e);padding:0 1em"><p dir="auto">B</p></blockquote><table role="table">R</table></div>'
        '<p style="font-size:small;-webkit-text-size-adjust:none;color:#666;">&mdash;<br /><a href="https://forge.example/x/1">L</a>.<br />F<img src="https://forge.example/beacon.gif" height="1" width="1" alt="" /><span style="color: transparent; font-size: 0; display: none; visibility: hidden; overflow: hidden; opacity: 0; width: 0; height: 0; max-width: 0; max-height: 0; mso-hide: all">Message ID: <span>&lt;x/1@forge.example&gt;</span></span></p>'
        '<script type="application/ld+json">[{"@context": "http://schema.example", "@type": "EmailMessage"}]</script>',
        "<tr><td>{}</td><td><code class=\"notranslate\">{}</code></td></tr>",
    ),
    "grid": (
        f"{_HEAD}<style>:root{{color-scheme:light dark;--ink:#222;--paper:#fff}} .card{{display:grid;grid-template-columns:2fr 1fr;gap:12px;background:var(--paper);color:var(--ink)}} .row{{display:flex;justify-content:space-between}} .cta{{display:inline-flex;background:linear-gradient(90deg,#0a58ca,#6610f2);color:#fff;padding:.6em 1.2em}}"
        " @media (prefers-color-scheme:dark){.card{--ink:#eee;--paper:#111} p{color:#eee!important}}</style></head><body style=\"margin:0;background:var(--paper);font:16px/1.5 system-ui,sans-serif\">"
        '<main class="card" style="max-inline-size:640px;margin-inline:auto"><h1 style="font:600 clamp(1.2rem,4vw,2rem)/1.2 Georgia">H</h1><div style="color:color-mix(in srgb,#222 90%,#fff)"><p>A</p><p style="color:oklch(40% 0 0)">B</p></div><section>R</section><a class="cta" href="https://app.example/go">L</a><small style="opacity:.7">F</small></main></body></html>',
        '<div class="row"><span style="display:block">{}</span><span>{}</span></div>',
    ),
    "picture": (
        f'{_HEAD}</head><body bgcolor="#ffffff" style="background-color:#ffffff"><div style="display:none;max-height:0;overflow:hidden;font-size:1px;color:#ffffff;line-height:1px;opacity:0">Read it in your browser{_FILL}</div><table width="100%" background="https://cdn.example/bg.jpg" style="background-image:url(\'https://cdn.example/bg.jpg\');background-size:cover">'
        '<tr><td height="200" valign="middle"><!--[if gte mso 9]><v:rect fill="true" stroke="false"><v:fill type="frame" src="https://cdn.example/bg.jpg"/><v:textbox inset="0,0,0,0"><![endif]--><font color="#ffffff" size="+2">H</font><p style="color:#ffffff;text-shadow:0 1px 2px rgba(0,0,0,.6)">A</p></td></tr></table>'
        '<table bgcolor="#14213d" width="600"><tr><td style="color:#fca311">B<table>R</table><a href="https://cdn.example/l" style="color:#ffffff;background:#14213d">L</a><img src="https://cdn.example/s.gif" width="1" height="1" style="display:block;opacity:0" alt=""></td></tr></table><p style="font-size:10px;line-height:12px;color:#999">F</p></body></html>',
        '<tr><td style="font-size:0;padding:8px"><div style="font-size:14px;color:#ffffff">{}</div></td><td style="color:white">{}</td></tr>',
    ),
    "dark": (
        f"{_HEAD}<meta name=\"color-scheme\" content=\"light dark\"><style>@media (prefers-color-scheme:dark){{.body{{background:#121212!important}} .text{{color:#fafafa!important}} .light{{display:none!important}} .dark{{display:block!important}}}} [data-ogsc] .text{{color:#fafafa!important}} [data-ogsb] .body{{background:#121212!important}} u+.body .gmail{{display:none}} #body .x{{display:none}}</style></head>"
        '<body id="body" class="body" style="background:#ffffff"><div class="light"><img alt="" src="https://cdn.example/l.png"></div><!--[if !mso]><!--><div class="dark" style="display:none;overflow:hidden;float:left;width:0;max-height:0"><img alt="" src="https://cdn.example/d.png"></div><!--<![endif]-->'
        '<div style="font-size:0px;line-height:0"><div style="display:inline-block;width:100%;font-size:16px;line-height:24px"><h1 class="text" style="color:#111111">H</h1><p class="text" style="color:#222">A</p><p class="text" style="color:#222">B</p></div></div><table>R</table><a class="text" href="https://cdn.example/x" style="color:#fff;background-color:#0b57d0;border:1px solid #0b57d0">L</a><p class="text" style="color:#5f6368;font:12px/16px Roboto">F</p></body></html>',
        '<tr><td class="text" style="color:#222222">{}</td><td class="text" align="right">{}</td></tr>',
    ),
    "gmail": (
        '<div dir="ltr"><div class="gmail_default" style="font-family:verdana,sans-serif"><b>H</b></div><div><br></div><div>A</div><div>B<br clear="all"></div><table style="border-collapse:collapse">R</table><div><a href="https://docs.example/d" target="_blank">L</a></div><span class="gmail_signature_prefix">-- </span><br><div class="gmail_signature" data-smartmail="gmail_signature">F</div></div>'
        '<br><div class="gmail_quote gmail_quote_container"><blockquote class="gmail_quote" style="margin:0px 0px 0px 0.8ex;border-left:1px solid rgb(204,204,204);padding-left:1ex"><div class="msg-1"><u></u></div></blockquote></div>',
        "<tr><td>{}</td><td>{}</td></tr>",
    ),
    "plain": ("H\n\nA\n\nB\n\nR\nL: https://files.example/plan\n\n-- \nF\n", "  {}: {}\n"),
}  # fmt: skip
_MARK = re.compile(r"(?<![^>\s\"])[HABRLF](?=[<:.\"\n])")
_HEADER = """Received: from mx{n}.example (mx{n}.example [192.0.2.{n}]) by mail.home.example; Mon, 2 Nov 2026 09:1{n}:07 +0100
From: {sender}
To: marta@home.example
Subject: {subject}
Message-ID: <{n}.{name}@mx.example>
MIME-Version: 1.0
Content-Type: text/{kind}; charset=utf-8

"""


def _mail(name: str, letter: Letter, n: int) -> bytes:
    page, row = PAGES[name]
    rows = "".join(row.format(*cells) for cells in letter.rows)
    values = dict(zip("HABRLF", (*letter[2:5], rows, *letter[6:]), strict=True))
    kind = "plain" if name == "plain" else "html"
    head = _HEADER.format(n=n, sender=letter.sender, subject=letter.subject, name=name, kind=kind)
    return (head + _MARK.sub(lambda mark: values[mark[0]], page)).encode()


def _words(letter: Letter) -> set[str]:
    text = " ".join([*letter[2:5], *map(" ".join, letter.rows), *letter[6:]])
    return set(re.findall(r"[a-z]{2,}", text.lower()))


HONEST = [
    (f"{name}, {kind}", _mail(name, letter, n), _words(letter))
    for n, (kind, letter) in enumerate(LETTERS.items())
    for name in PAGES
]
