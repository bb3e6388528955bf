package visible_test

import (
	"encoding/json"
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/kit/goldentest"
	"github.com/callyard/callyard/internal/kit/visible"
)

// deceits lists texts that look like others.
var deceits = []string{
	`{"plain":"ASCII, é, 漢字, 🙂 and עברית"}`,
	"{\"bidi\":\"invoice\u202egnp.exe\u202c \u2066x\u2069 \u200f\u061c\"}",
	"{\"zero\":\"a\u200bb\u200c\u200d\u2060\ufeff\u00ad\u180e\u034f\"}",
	"{\"many\":\"" + strings.Repeat("\u200b", 1000) + "\"}",
	"{\"twins\":\"pаypal.соm ΑΒΕ ⅰⅴ ｅｘａｍｐｌｅ 𝐚𝑏𝒄 ſ K\"}",
	"{\"spaces\":\"a\u00a0b\u2003c\u3000d\u2028e\u2029f\u3164g\u2800h\"}",
	"{\"tags\":\"\U000e0041\U000e007f\ufe0f\U000e0100\"}",
	"{\"control\":\"\x00\x07\x1b[31m\x7f\u0085\"}\r\n\t",
	"{\"delete\":\"\x7f\"}",
	"{\"combining\":\"a\u0301\u0336\u20dd\"}",
	"{\"private\":\"\ue000\U000f0000\ufdd0\U0010ffff\"}",
	"{\"broken\":\"\xff\xc0\xaf\xed\xa0\x80\"}",
	`{"markup":"<b class=\"h\">U+202E</b> & '&amp;' ` + "`" + `"}`,
	`{"escapes":"\u202e\u0000\u0430"}`,
}

func TestDeceptiveCharactersAreShownAsCodePoints(t *testing.T) {
	var out strings.Builder
	for _, text := range deceits {
		out.WriteString(string(visible.HTML([]byte(text))) + "\n")
	}
	goldentest.Text(t, "testdata/deceits.html", out.String())
}

// Next to text from right to left, browsers would show the numbers and names around it in another order.
func TestTextFromRightToLeftIsIsolated(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":["אב",1,"ג ד 2"],"b":"x"}`: `{&#34;a&#34;:[&#34;<bdi>אב</bdi>&#34;,1,&#34;<bdi>ג ד 2</bdi>&#34;],&#34;b&#34;:&#34;x&#34;}`,
		"מ: 5\nlast":                     "<bdi>מ: 5</bdi>\nlast",
		"plain ا and \"b\"":              "<bdi>plain ا and </bdi>&#34;b&#34;",
		"\"<\" א\u202eב\"":               `&#34;&lt;&#34;<bdi> א<b class="h">U+202E text direction</b>ב</bdi>&#34;`,
		`"א 1\nב\u05d2"`:                 `&#34;<bdi>א 1</bdi>\n<bdi>ב</bdi>\u05d2&#34;`,
		"א\\":                            `<bdi>א</bdi>\`,
		"漢字 and é":                       "漢字 and é",
		"\u200f":                         `<b class="h">U+200F text direction</b>`,
	} {
		if got := string(visible.HTML([]byte(text))); got != want {
			t.Errorf("%q is shown as %s, not %s", text, got, want)
		}
	}
}

func TestEscapedJSONIsEquivalentToTheOriginal(t *testing.T) {
	for _, text := range deceits {
		var was, is any
		if json.Unmarshal([]byte(text), &was) != nil {
			continue // not JSON
		}
		escaped := visible.Escaped([]byte(text))
		if err := json.Unmarshal([]byte(escaped), &is); err != nil {
			t.Fatalf("%q: %v", escaped, err)
		}
		a, _ := json.Marshal(was)
		b, _ := json.Marshal(is)
		if string(a) != string(b) && utf8.ValidString(text) {
			t.Errorf("%q became %q", a, b)
		}
		for _, r := range escaped {
			if r >= 0x7F && visible.Marked(r) && utf8.ValidString(text) {
				t.Errorf("%U is still in %q", r, escaped)
			}
		}
	}
}

var marks = regexp.MustCompile(`<b class="[hl]">(?:. )?(?:U\+([0-9A-F]{4,6})|byte ([0-9A-F]{2}))[^<]*</b>`)

func FuzzShown(f *testing.F) {
	for _, text := range deceits {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		shown := strings.NewReplacer("<bdi>", "", "</bdi>", "").Replace(string(visible.HTML(b)))
		// Apart from our own marks there is no markup, and nothing invisible.
		rest := html.UnescapeString(marks.ReplaceAllString(shown, ""))
		if strings.ContainsAny(marks.ReplaceAllString(shown, ""), "<>\"") {
			t.Errorf("markup in %q", shown)
		}
		for _, r := range rest {
			if r != '\n' && (!unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r) || visible.Marked(r)) && r != utf8.RuneError {
				t.Errorf("%U is not marked in %q", r, shown)
			}
		}
		// Nothing is omitted: plain characters remain, in their order.
		var plain strings.Builder
		for i := 0; i < len(b); {
			r, size := utf8.DecodeRune(b[i:])
			if (r != utf8.RuneError || size > 1) && !visible.Marked(r) {
				plain.Write(b[i : i+size])
			}
			i += size
		}
		if rest != plain.String() {
			t.Errorf("%q is shown as %q", plain.String(), rest)
		}
	})
}
