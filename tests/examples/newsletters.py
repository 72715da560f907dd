"""A hundred newsletters as today's builders write them; all invented.

What builders have in common: tables in tables, a preheader, a column that is as wide as the mail on
a telephone, what only telephones or only Outlook show, colours for dark screens, buttons.
"""
# ruff: noqa: E501 (their lines are long)

import random

WORDS = (
    "autumn recipes garden workshop opening hours library members concert tickets trail family"
    " market saturday volunteers booking calendar kitchen community travel guide weekend photos"
    " readers letters editor museum children river cycling meeting harvest lantern evening"
).split()
_RESET = """
body,table,td,a{-webkit-text-size-adjust:100%;-ms-text-size-adjust:100%}
table,td{mso-table-lspace:0pt;mso-table-rspace:0pt;border-collapse:collapse}
img{-ms-interpolation-mode:bicubic;border:0;height:auto;line-height:100%;outline:none;
text-decoration:none}
#outlook a{padding:0} .ReadMsgBody{width:100%} .ExternalClass{width:100%}
.ExternalClass,.ExternalClass p,.ExternalClass span,.ExternalClass td{line-height:100%}
p{display:block;margin:13px 0}
a[x-apple-data-detectors]{color:inherit!important;text-decoration:none!important}
"""
_PHONE = """
@media only screen and (max-width:WIDTHpx){
 .wrap{width:100%!important;max-width:100%!important} .col{width:100%!important;display:block!important}
 .phone-hide{display:none!important;max-height:0!important;overflow:hidden!important}
 .phone-only{display:block!important;max-height:none!important;font-size:16px!important}
 h1{font-size:24px!important;line-height:30px!important} td.pad{padding:10px 20px!important}
 .button a{display:block!important;width:auto!important}
}
"""
_DARK = """
:root{color-scheme:light dark;supported-color-schemes:light dark}
@media (prefers-color-scheme:dark){
 .card,.wrap{background-color:#1e1e1e!important} h1,h2,p,td,.text{color:#ffffff!important}
 .light-logo{display:none!important} .dark-logo{display:block!important} a{color:#9ecbff!important}
}
[data-ogsc] .text{color:#ffffff!important} [data-ogsb] .card{background-color:#1e1e1e!important}
"""
_MJML = """
@media only screen and (min-width:480px){
 .mj-column-per-100{width:100%!important;max-width:100%}
 .mj-column-per-50{width:50%!important;max-width:50%}
 .mj-column-per-33{width:33.333333%!important;max-width:33.333333%}
}
.moz-text-html .mj-column-per-50{width:50%!important;max-width:50%}
"""
_PREHEADER = (
    '<div style="display:none;max-height:0px;overflow:hidden;mso-hide:all">{}</div>',
    '<div style="display:none;font-size:1px;color:#ffffff;line-height:1px;max-height:0px;'
    'max-width:0px;opacity:0;overflow:hidden">{}</div>',
    '<span class="preheader" style="color:transparent;display:none!important;height:0;opacity:0;'
    'overflow:hidden;visibility:hidden;width:0">{}</span>',
    "",
)
_FONTS = (
    "Arial,Helvetica,sans-serif", "'Helvetica Neue',Helvetica,Arial", "Georgia,serif",
    "Ubuntu, Helvetica, Arial", "-apple-system,BlinkMacSystemFont,'Segoe UI',Roboto",
)  # fmt: skip
_TEXT_COLOURS = ("#333333", "#202020", "#4a4a4a", "rgb(51, 51, 51)", "#000")
_BUTTON_COLOURS = ("#1a73e8", "#d93025", "#0b8043", "rgb(32, 33, 36)")


class _Newsletter:
    """One newsletter: what is drawn once holds in all of it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.font, self.colour = self.rng.choice(_FONTS), self.rng.choice(_TEXT_COLOURS)
        self.size = self.rng.choice(("14px", "15px", "16px", "1rem", "12pt"))
        self.line = self.rng.choice(("1.5", "24px", "150%", "1.6"))
        self.width = self.rng.choice((580, 600, 640, 680))
        self.is_dark = self.rng.random() < 0.5

    def words(self, n: int) -> str:
        return " ".join(self.rng.choices(WORDS, k=n))

    def text(self, n: int = 30) -> str:
        style = f"font-family:{self.font};font-size:{self.size};line-height:{self.line};"
        return (
            f'<p class="text" style="margin:0 0 16px;{style}color:{self.colour}">{self.words(n)} '
            f'<a href="https://news.example/{n}" style="color:#1a73e8;text-decoration:underline">'
            f"{self.words(2)}</a> <strong>{self.words(3)}</strong></p>"
        )

    def heading(self) -> str:
        return (
            f'<h1 style="margin:0;font-family:{self.font};font-size:28px;line-height:36px;'
            f'font-weight:700;letter-spacing:-0.5px;color:{self.colour}">{self.words(5)}</h1>'
        )

    def button(self) -> str:
        colour = self.rng.choice(_BUTTON_COLOURS)
        return (
            f'<table role="presentation" class="button" border="0" cellpadding="0" cellspacing="0"'
            f' style="margin:0 auto"><tr><td align="center" bgcolor="{colour}" style="border-radius:'
            f'4px;background:{colour}" valign="middle"><!--[if mso]><v:roundrect><![endif]-->'
            f'<a href="https://news.example/go" target="_blank" style="display:inline-block;'
            f"background:{colour};color:#ffffff;font-family:{self.font};font-size:16px;font-weight:"
            "bold;line-height:120%;margin:0;text-decoration:none;padding:12px 28px;mso-padding-alt:"
            f'0px;border-radius:4px;border:1px solid {colour}">{self.words(2)}</a></td></tr></table>'
        )

    def picture(self) -> str:
        return (
            f'<img src="https://news.example/a.png" alt="{self.words(2)}" width="{self.width}" '
            'class="light-logo" style="display:block;width:100%;max-width:100%;height:auto">'
        )

    def columns(self, n: int) -> str:
        cells = "".join(
            f'<td class="col pad" width="{self.width // n}" valign="top" style="width:{100 // n}%;'
            f'padding:10px">{self.picture()}{self.text(15)}</td>'
            for _ in range(n)
        )
        return f'<table width="100%" cellpadding="0" cellspacing="0"><tr>{cells}</tr></table>'

    def mjml_columns(self, n: int) -> str:
        share = {1: 100, 2: 50, 3: 33}[n]
        return "".join(
            f'<div class="mj-column-per-{share} mj-outlook-group-fix" style="font-size:0px;text-align:'
            'left;direction:ltr;display:inline-block;vertical-align:top;width:100%;"><table border="0"'
            ' style="vertical-align:top" width="100%"><tbody><tr><td align="left" style="font-size:0px;'
            'padding:10px 25px;word-break:break-word"><div style="font-family:'
            f'{self.font};font-size:14px;line-height:1.5;text-align:left;color:{self.colour}">'
            f"{self.words(25)}</div></td></tr></tbody></table></div>"
            for _ in range(n)
        )

    def phone_only(self) -> str:
        return (
            '<!--[if !mso]><!--><div class="phone-only" style="display:none;max-height:0;overflow:'
            f'hidden;font-size:0">{self.words(4)}</div><!--<![endif]-->'
        )

    def footer(self) -> str:
        return (
            f'<p style="font-family:{self.font};font-size:11px;line-height:16px;color:#999999;margin:'
            f'20px 0 0;text-align:center">{self.words(20)} &copy; 2024 <a href="https://news.example/u"'
            f' style="color:#999999">{self.words(1)}</a><br><span class="phone-hide">{self.words(3)}'
            "</span></p>"
        )

    def page(self) -> str:
        rng = self.rng
        is_mjml = rng.random() < 0.4
        blocks = [self.heading(), self.text(), self.button(), self.picture(), self.text(50)]
        for _ in range(rng.randrange(1, 5)):
            n = rng.choice((1, 2, 2, 3))
            blocks += [self.mjml_columns(n) if is_mjml else self.columns(n)]
            blocks += [rng.choice((self.text, self.heading, self.button, self.phone_only))()]
        rows = "".join(
            f'<tr><td class="pad card" style="padding:{rng.choice((10, 20, 30))}px 24px;'
            f'background-color:#ffffff">{block}</td></tr>'
            for block in [*blocks, self.footer()]
        )
        sheet = _RESET + _PHONE.replace("WIDTH", str(rng.choice((480, 600, 620, 768))))
        sheet += (_DARK if self.is_dark else "") + (_MJML if is_mjml else "")
        shadow = rng.choice(
            ("", "box-shadow:0 2px 12px rgba(0,0,0,.08);", "border:1px solid #ddd;")
        )
        preheader = rng.choice(_PREHEADER).format(self.words(9) + " &#847;&zwnj;&nbsp;" * 60)
        return (
            '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN"><html xmlns="http://www.'
            'w3.org/1999/xhtml" lang="en"><head><meta http-equiv="Content-Type" content="text/html; '
            'charset=utf-8"><meta name="viewport" content="width=device-width"><meta name="color-'
            f'scheme" content="light dark"><title>{self.words(3)}</title><style type="text/css">'
            f"{sheet}</style><!--[if mso]><style>.x{{font-family:Arial}}</style><![endif]--></head>"
            '<body style="margin:0;padding:0;word-spacing:normal;background-color:#f4f4f4">'
            f'{preheader}<center style="width:100%;background-color:#f4f4f4"><div class="wrap" style='
            f'"max-width:{self.width}px;margin:0 auto;{shadow}"><table role="presentation" align='
            f'"center" border="0" cellpadding="0" cellspacing="0" width="100%" style="max-width:'
            f'{self.width}px;width:100%;margin:0 auto;border-radius:8px;overflow:hidden">{rows}'
            "</table></div></center></body></html>"
        )


NEWSLETTERS = [_Newsletter(seed).page() for seed in range(100)]
