"""The tags as a browser follows them: what hides text, and what ends the hiding."""

from one_case import each

from nbspam.tokens.html import html_text

HIDE = 'style="display:none"'


def seen(source):
    text, _, tricks = html_text(source)
    return text.split(), {trick.removeprefix("trick:") for trick in tricks}


@each(
    "source, words",
    [
        # What a browser closes by itself, so that a fake `hidden` cannot swallow the text.
        (f"<p {HIDE}>a<p>seen", "seen"),
        (f"<p {HIDE}>a<div>seen</div>", "seen"),
        (f"<p {HIDE}>a<table><tr><td>seen", "seen"),
        (f"<ul><li {HIDE}>a<li>seen</ul>", "seen"),
        (f"<table><tr><td {HIDE}>a<td>seen</table>", "seen"),
        (f"<table><tr {HIDE}><td>a<tr><td>seen</table>", "seen"),
        (f"<dl><dt {HIDE}>a<dd>seen</dl>", "seen"),
        (f"<div {HIDE}>" + "<i>" * 500 + "a</div>seen", "seen"),
        # What it does not.
        (f"<ul><li {HIDE}>a<ul><li>b</ul>c</ul>seen", "seen"),
        (f"<div {HIDE}><table><tr><td>a</div>b</table></div>seen", "seen"),
        (f"<div {HIDE}><p>a</section></b>b</div>seen", "seen"),
        (f"<table {HIDE}><tr><td><p>a</table>seen", "seen"),
        (f"<span {HIDE}>a<p>b</span>seen", "seen"),
    ],
)
def test_tags_end_where_browsers_end_them(source, words):
    assert seen(source) == (words.split(), {"hidden"})


@each(
    "source, words, tricks",
    [
        ("<div hidden>a</div>seen", "seen", {"hidden"}),
        ("<div HIDDEN=''>a</div>seen", "seen", {"hidden"}),
        ("<div title='hidden'>seen</div>", "seen", set()),
        ("<input type=hidden value=a>seen", "seen", set()),
        ("<form><input type=\"hidden\">seen</form>", "seen", set()),
        ("<div hidden style='display:block'>seen</div>", "seen", set()),
        ("<div style=display:none>a</div>seen", "seen", {"hidden"}),
        ("<div style='visibility:hidden'>a<b style='visibility:visible'>seen</b>a</div>", "seen",
         {"hidden"}),
        ("<details>a<summary>seen</summary>a</details>", "seen", {"hidden"}),
        ("<details open>seen</details>", "seen", set()),
        ("<select><option>a<option>b</select>seen", "seen", set()),
        ("<template><p>a</p></template>seen", "seen", {"hidden"}),
        ("<noframes>a</noframes>seen", "seen", {"hidden"}),
        ("<noscript>seen</noscript>", "seen", set()),
        ("<title>a</title>seen", "seen", set()),
        ("<p style='color:transparent'>a<i style='color:red'>seen</i></p>", "seen",
         {"same-colour"}),
        ("<style>.a{color:white}</style><p class=a>a</p>seen", "seen", {"same-colour"}),
        ("<style>.a{display:none}</style><p class='b A a'>x</p>seen", "seen", {"hidden"}),
        ("<style>.a{display:none}</style><p class=a style='display:block'>seen</p>", "seen", set()),
        ("<body bgcolor=black text=white>seen", "seen", set()),
        ("<td style='background:navy'><font color=white>seen</font></td>", "seen", set()),
        ("<td style='background:url(x.gif)'><font color=white>a</font></td>seen", "seen",
         {"same-colour"}),
    ],
)  # fmt: skip
def test_what_is_seen(source, words, tricks):
    assert seen(source) == (words.split(), tricks)


def test_a_page_of_which_nothing_is_to_be_seen_is_misread_and_seen():
    text = "claim your million pounds today and send the money to us"
    assert seen(f"<div {HIDE}>{text}</div>")[0] == text.split()
    assert seen(f"<div {HIDE}>{text}</div>one two three four five six")[0][0] == "one"


@each("tag", ["<wbr>", "<zz>", "</zz>", "<b></b>", "<q7>", "<o:p>", "<nobr>"])
def test_a_word_goes_on_behind_tags_that_show_nothing(tag):
    assert seen(f"vi{tag}agra") == (["viagra"], set())


@each("tag", ["<br>", "<p>", "<td>", "<li>", "<h1>", "<hr>", "<img>", "</div>"])
def test_a_word_ends_at_a_block(tag):
    assert seen(f"one{tag}two") == (["one", "two"], set())
