package visible_test

import (
	"cmp"
	"encoding/json"
	"html"
	"reflect"
	"regexp"
	"slices"
	"strconv"
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
	"{\"marks\":\"नमस्ते สวัสดี ti\u1ebfng Vie\u0323\u0302t A\u0308 مَرْحَبًا שָׁלוֹם が か\u3099\"}",
	"{\"foreign marks\":\"a\u093f नa\u0e49 न\u0e49 \u0301 1\u0301 i\u0307 \u0430\u0301 \u200b\u0301 क\ufe0f ᠠ\u180b ក\u17d2 🙂\u0301\"}",
	"{\"many marks\":\"ก\u0e49\u0e49\u0e49 " + "क" + strings.Repeat("\u093c\u093f\u0902\u0901\u0903", 20) + " e\u0301\u0301\"}",
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
		wantHarmless(t, escaped)
	}
}

// wantHarmless fails if text has a character that must be marked. A combining mark is allowed on a
// letter, up to four different ones.
func wantHarmless(t *testing.T, text string) {
	t.Helper()
	var on []rune // the letter and its marks so far
	for _, r := range text {
		isMark := unicode.Is(unicode.M, r) && !unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) && r != 0x034F
		switch {
		case isMark && len(on) > 0 && len(on) <= 4 && !slices.Contains(on, r):
			on = append(on, r)
			continue
		case r != '\n' && r != '\t' && r != '\r' && (!unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r) || visible.Marked(r)) && r != utf8.RuneError:
			t.Errorf("%U is not marked in %q", r, text)
		}
		if on = on[:0]; unicode.IsLetter(r) {
			on = append(on, r)
		}
	}
}

// Text with marks is judged by its letters: a mark that spells a language is shown as it is.
func TestMarksOfALanguageAreShown(t *testing.T) {
	for text, want := range map[string]string{
		"हिन्दी में": "हिन्दी में", "ภาษาไทย น้ำ": "ภาษาไทย น้ำ", "Vie\u0323\u0302t": "Vie\u0323\u0302t", "Vie\u0302\u0323t": "Vie\u0302\u0323t", "العَرَبِيَّة": "<bdi>العَرَبِيَّة</bdi>", "שָׁלוֹם": "<bdi>שָׁלוֹם</bdi>", "தமிழ்": "தமிழ்",
		"admi\u0307n":    `admi<b class="h">U+0307 combining mark</b>n`,                     // looks like admin
		"p\u0336ay":      `p<b class="h">U+0336 combining mark</b>ay`,                       // crossed out
		"ก\u0e49\u0e49":  "ก\u0e49" + `<b class="h">U+0E49 combining mark</b>`,              // the second is on the first
		"e\u0301\u0e49":  "e\u0301" + `<b class="h">U+0E49 combining mark</b>`,              // of another script
		"\u0430\u0301":   `<b class="l">а U+0430</b><b class="h">U+0301 combining mark</b>`, // on a look-alike
		" \u0e49":        ` <b class="h">U+0E49 combining mark</b>`,                         // on a space
		"क\u093c\u200dष": "क\u093c" + `<b class="h">U+200D zero width joiner</b>ष`,
	} {
		if got := string(visible.HTML([]byte(text))); got != want {
			t.Errorf("%q is shown as %s, not %s", text, got, want)
		}
	}
}

func TestEscapesOfReadableCharactersAreCharacters(t *testing.T) {
	for text, want := range map[string]string{
		`{"gr\u00fc\u00DFe":"\u0928\u092e\u0938\u094d\u0924\u0947 \u6f22\u5b57 \ud83d\ude42"}`: `{"grüße":"नमस्ते 漢字 🙂"}`,
		`{"a":"Vi\u1ec7t, Vie\u0323\u0302t, e\u0301"}`:                                         "{\"a\":\"Việt, Vie\u0323\u0302t, e\u0301\"}",
		// Characters that could deceive, ASCII, and what is no escape of a character.
		`{"b":"\u202e\u200b\u0430\u00a0\u0022\u005c\u003cb\u0000"}`:                  `{"b":"\u202e\u200b\u0430\u00a0\u0022\u005c\u003cb\u0000"}`,
		`{"c":"\\u00e9 \\\u00e9 \ud83d \ude42 \n\"\u00e9"}`:                          `{"c":"\\u00e9 \\é \ud83d \ude42 \n\"é"}`,
		`{"d":"i\u0307 p\u0336 \u0301 \u0430\u0301 a\u0e49 ก\u0e49\u0e49 \n\u0301"}`: `{"d":"i\u0307 p\u0336 \u0301 \u0430\u0301 a\u0e49 ก` + "\u0e49" + `\u0e49 \n\u0301"}`,
		`{"e":"\u00`: `{"e":"\u00`, `\`: `\`, "\"\xff\\u00e9\"": "\"\xffé\"",
	} {
		if got := string(visible.Readable([]byte(text))); got != want {
			t.Errorf("%s became %s, not %s", text, got, want)
		}
	}
}

func FuzzReadable(f *testing.F) {
	for _, text := range deceits {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		was, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		escaped := strconv.QuoteToASCII(text)
		for _, raw := range []string{string(was), escaped, text} {
			var before, after any
			if json.Unmarshal([]byte(raw), &before) != nil {
				continue
			}
			got := visible.Readable([]byte(raw))
			if err := json.Unmarshal(got, &after); err != nil || !reflect.DeepEqual(before, after) {
				t.Errorf("%s became %s: %v", raw, got, err)
			}
			// It is shown without a mark that the original does not have.
			if a, b := strings.Count(string(visible.HTML([]byte(raw))), "<b class"), strings.Count(string(visible.HTML(got)), "<b class"); b > a {
				t.Errorf("%s became %s, with %d marks", raw, got, b)
			}
		}
	})
}

var marks = regexp.MustCompile(`<b class="[hl]">(?:. )?(?:U\+([0-9A-F]{4,6})|byte ([0-9A-F]{2}))[^<]*?(?: ×([0-9]+))?</b>`)

// original returns the text that is shown as a page shows it.
func original(shown string) string {
	var out strings.Builder
	plain := 0
	for _, at := range marks.FindAllStringSubmatchIndex(shown, -1) {
		of := func(group int) string {
			if at[2*group] < 0 {
				return ""
			}
			return shown[at[2*group]:at[2*group+1]]
		}
		out.WriteString(html.UnescapeString(shown[plain:at[0]]))
		code, _ := strconv.ParseUint(of(1)+of(2), 16, 32)
		times, _ := strconv.Atoi(cmp.Or(of(3), "1"))
		if of(2) != "" {
			out.WriteString(strings.Repeat(string([]byte{byte(code)}), times))
		} else {
			out.WriteString(strings.Repeat(string(rune(code)), times))
		}
		plain = at[1]
	}
	return out.String() + html.UnescapeString(shown[plain:])
}

func FuzzShown(f *testing.F) {
	for _, text := range deceits {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		shown := strings.NewReplacer("<bdi>", "", "</bdi>", "").Replace(string(visible.HTML(b)))
		// Apart from our own marks there is no markup, and nothing invisible.
		rest := marks.ReplaceAllString(shown, "\n")
		if strings.ContainsAny(rest, "<>\"") {
			t.Errorf("markup in %q", shown)
		}
		wantHarmless(t, html.UnescapeString(rest))
		// Nothing is omitted.
		if got := original(shown); got != string(b) {
			t.Errorf("%q is shown as %q", b, shown)
		}
	})
}
