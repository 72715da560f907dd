import codecs

from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.charsets import decode

CHARSETS = st.one_of(
    st.sampled_from(
        "utf-8 utf-7 utf-16 utf-32 us-ascii latin-1 gb2312 big5 hz iso-2022-jp iso-2022-kr idna "
        "punycode unicode_escape raw-unicode-escape unicode.escape hex rot13 zlib undefined mbcs "
        "charmap utf_8_sig shift_jis koi8-r cp437 unicode x\x00y é".split(" ")
    ),
    st.text(max_size=12),
)


@each(
    "name",
    "UTF8 latin1 ISO_8859-15 l9 cp1251 windows_1251 koi8-u mac-romanian cp737 iso8859-1".split(),
)
def test_charsets_by_any_name_that_python_knows(name):
    data = "é" if codecs.lookup(name).name in ("utf-8", "iso8859-1", "iso8859-15") else "я"
    data = "ă" if "mac" in name else "Ω" if name == "cp737" else data
    assert decode(data.encode(name), name) == data


@given(st.binary(max_size=80), CHARSETS)
def test_decode_never_raises_and_never_grows(data, charset):
    text = decode(data, charset)
    assert len(text) <= len(data)
    text.encode("utf-8")
