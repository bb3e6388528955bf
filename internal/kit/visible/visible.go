// Package visible displays untrusted text, such as arguments that a model chose, so that no
// character of it can deceive. It names or escapes characters that are invisible, that change the
// direction of the text, or that look like another character. Combining marks are shown as they are
// where they spell a language: on a letter of their script.
package visible

import (
	"fmt"
	"html/template"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
)

// hiddenKind is the reason why a character is not displayed verbatim.
type hiddenKind int

const (
	harmless  hiddenKind = iota
	hidden               // invisible or affects layout: control, format, bidirectional, unusual spaces
	lookalike            // looks like an ASCII character
	broken               // not UTF-8
)

// HTML returns text in which every character that could deceive is a mark with its code point. Line
// feeds are unchanged. Nothing is omitted. Text with letters that are written from right to left is
// isolated, up to the next quotation mark or escape: it reads as it should, and does not reorder what is
// around it, such as the names and numbers of JSON.
func HTML(b []byte) template.HTML {
	var out strings.Builder
	out.Grow(len(b) + len(b)/8 + 16)
	for len(b) > 0 {
		end, isolate := piece(b)
		if isolate {
			out.WriteString("<bdi>")
		}
		show(&out, b[:end])
		if isolate {
			out.WriteString("</bdi>")
		}
		b = b[end:]
	}
	return template.HTML(out.String()) //nolint:gosec // every piece of the text was escaped
}

// piece returns the length of the first piece of text and whether it must be isolated. Text without
// letters from right to left is one piece.
func piece(b []byte) (end int, isolate bool) {
	start := 0 // after the last separator
	for i := 0; i < len(b); {
		n := separator(b[i:])
		switch {
		case isolate && n > 0:
			return i, true
		case n > 0:
			start = i + n
			i = start
		case b[i] < utf8.RuneSelf || isolate:
			i++
		default:
			r, size := utf8.DecodeRune(b[i:])
			if isRightToLeft(r) {
				if start > 0 {
					return start, false
				}
				isolate = true
			}
			i += size
		}
	}
	return len(b), isolate
}

// separator returns the length of the separator at the start of text, or 0: a quotation mark, a line
// feed, or an escape of JSON such as \n.
func separator(b []byte) int {
	switch {
	case b[0] == '"', b[0] == '\n':
		return 1
	case b[0] != '\\':
		return 0
	case len(b) >= 6 && b[1] == 'u':
		return 6
	case len(b) >= 2 && b[1] < utf8.RuneSelf:
		return 2
	}
	return 1
}

// isRightToLeft reports whether a character is a letter that is written from right to left.
func isRightToLeft(r rune) bool {
	p, _ := bidi.LookupRune(r)
	return (p.Class() == bidi.R || p.Class() == bidi.AL) && unicode.IsLetter(r)
}

// show writes text without line feeds or quotation marks that separate pieces.
func show(out *strings.Builder, b []byte) {
	plain := 0
	flush := func(to int) { out.WriteString(template.HTMLEscapeString(string(b[plain:to]))) }
	for i := 0; i < len(b); {
		if c := b[i]; c < utf8.RuneSelf && (c >= ' ' && c != 0x7f || c == '\n') {
			i += 1 + spelledMarks(rune(c), b[i+1:])
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		why := concernOf(r, size)
		if why == harmless {
			i += size + spelledMarks(r, b[i+size:])
			continue
		}
		flush(i)
		n := 1
		// Decode rather than compare: an invalid byte may start the next character.
		for next := i + size; next < len(b); next += size {
			if again, width := utf8.DecodeRune(b[next:]); again != r || width != size || b[next] != b[i] {
				break
			}
			n++
		}
		mark(out, r, b[i], why, n)
		i += n * size
		plain = i
	}
	flush(len(b))
}

// mark writes a run of n equal characters as one mark.
func mark(out *strings.Builder, r rune, first byte, why hiddenKind, n int) {
	switch why {
	case lookalike:
		fmt.Fprintf(out, `<b class="l">%c U+%04X`, r, r)
	case broken:
		fmt.Fprintf(out, `<b class="h">byte %02X`, first)
	default:
		fmt.Fprintf(out, `<b class="h">U+%04X`, r)
		if name := named(r); name != "" {
			out.WriteByte(' ')
			out.WriteString(name)
		}
	}
	if n > 1 {
		fmt.Fprintf(out, " ×%d", n)
	}
	out.WriteString("</b>")
}

// concernOf returns the reason not to display a character verbatim. A combining mark is judged with the
// letter before it, by [spelledMarks].
func concernOf(r rune, size int) hiddenKind {
	switch {
	case r == utf8.RuneError && size <= 1:
		return broken
	case r == '\n' || r >= ' ' && r < 0x7f:
		return harmless
	case isInvisibleLetter(r) || !unicode.IsGraphic(r) || unicode.Is(unicode.M, r) || unicode.Is(unicode.Zs, r):
		return hidden
	case resemblesASCII(r):
		return lookalike
	}
	return harmless
}

// isInvisibleLetter reports whether a character counts as a letter or symbol but is invisible.
func isInvisibleLetter(r rune) bool {
	switch r {
	case 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0xFFFC, 0x1D159:
		return true
	}
	return false
}

// named returns the name of a character that is often used to deceive.
func named(r rune) string {
	switch r {
	case '\t':
		return "tab"
	case '\r':
		return "return"
	case 0x00:
		return "null"
	case 0x1B:
		return "escape"
	case 0xA0:
		return "no-break space"
	case 0xAD:
		return "soft hyphen"
	case 0x200B:
		return "zero width space"
	case 0x200C:
		return "zero width non-joiner"
	case 0x200D:
		return "zero width joiner"
	case 0x2060:
		return "word joiner"
	case 0xFEFF:
		return "byte order mark"
	case 0x2028:
		return "line separator"
	case 0x2029:
		return "paragraph separator"
	}
	switch {
	case unicode.Is(unicode.Bidi_Control, r):
		return "text direction"
	case unicode.Is(unicode.Variation_Selector, r):
		return "variation selector"
	case r >= 0xE0000 && r <= 0xE007F:
		return "tag"
	case unicode.Is(unicode.M, r):
		return "combining mark"
	case unicode.Is(unicode.Zs, r):
		return "space"
	case unicode.IsControl(r):
		return "control"
	}
	return ""
}

// twins lists letters and signs of other scripts that look like ASCII characters in common
// typefaces.
const twins = "АВЕЅІЈКМНОРСТУХЬаеорсухѕіјԁԛԝһӏҮүҺԌԜᴦг" + // Cyrillic
	"ΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορυχγϲϳͿκικ" + // Greek
	"ՍՕԼօոսզցհԛքյ" + // Armenian
	"ᎪᏴᏟᎠᎬᏀᎻᎥᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃ" + // Cherokee
	"ꓐꓑꓒꓓꓔꓖꓗꓙꓚꓜꓝꓞꓟꓠꓡꓢꓣꓤꓥꓦꓧꓨꓩꓪꓫꓬꓭꓮꓯꓰꓱꓲꓳꓴꓵꓶꓷ" + // Lisu
	"ıȷɑɡɩʋƖǃ" + // Latin, beyond ASCII
	"‐‑‒–−⁃˗՚‘’‚‛′‵ʹʻʼʽˈˋ´“”‟″〃⁄∕⧸⟋╱∖⧵⧹∣❘ǀ׀│∶։׃ː꞉;․‚¸˸" + // signs
	"꘎〔〕❨❩❲❳﴾﴿‹›❮❯˂˃⟨⟩〈〉∗⁎٭⋆˜∼⁓＿ˍ✕×÷¡" +
	"٠۰०০੦૦௦౦೦൦๐໐၀ס०ഠ۵Օ" // digits like 0 and o

func resemblesASCII(r rune) bool {
	if strings.ContainsRune(twins, r) {
		return true
	}
	// Fullwidth, mathematical, circled and other stylized forms of ASCII.
	var buf [utf8.UTFMax]byte
	n := utf8.EncodeRune(buf[:], r)
	folded := norm.NFKC.Bytes(buf[:n])
	for _, c := range folded {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return len(folded) > 0
}

// Escaped returns JSON in which every character that could deceive is written as an equivalent
// escape, so that a person can see what they edit. Only strings of valid JSON contain such
// characters.
func Escaped(b []byte) string {
	var out strings.Builder
	out.Grow(len(b))
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		switch why := concernOf(r, size); {
		case why == harmless:
			size += spelledMarks(r, b[i+size:])
			out.Write(b[i : i+size])
		case why == broken, size == 1 && r != 0x7F:
			out.Write(b[i : i+size]) // other ASCII control characters occur only between values
		case r > 0xFFFF:
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xD800+(r>>10), 0xDC00+(r&0x3FF))
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		i += size
	}
	return out.String()
}
