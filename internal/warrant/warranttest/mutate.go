// Package warranttest mutates the subject of a warrant in the ways in which an attacker or a
// careless program would. The test suites of the warrant and of the worker share it. It must not
// be used outside tests.
//
// Every result differs from the input.
package warranttest

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"unicode"
)

// lookalikes maps letters to others that look the same.
var lookalikes = strings.NewReplacer("a", "а", "c", "с", "e", "е", "o", "о", "p", "р", "x", "х", "y", "у", "i", "і", "s", "ѕ")

// Text changes a name.
func Text(r *rand.Rand, text string) string {
	for {
		var is string
		switch at := r.IntN(len(text) + 1); r.IntN(9) {
		case 0:
			is = string(Bit(r, []byte(text)))
		case 1: // other case
			is = mapOne(r, text, func(c rune) rune {
				if unicode.IsUpper(c) {
					return unicode.ToLower(c)
				}
				return unicode.ToUpper(c)
			})
		case 2:
			is = lookalikes.Replace(text)
		case 3: // invisible characters
			is = text[:at] + []string{"\u200b", "\u202e", "\u00ad", "\ufeff", "\x00"}[r.IntN(5)] + text[at:]
		case 4:
			is = text + []string{" ", "\t", ".", "/", "\n"}[r.IntN(5)]
		case 5:
			is = text[:at]
		case 6:
			is = text + text
		case 7: // the same letters in another Unicode normalization form
			is = strings.ReplaceAll(strings.ReplaceAll(text, "é", "e\u0301"), "-", "\u2010")
		case 8:
			is = ""
		}
		if is != text {
			return is
		}
	}
}

func mapOne(r *rand.Rand, text string, change func(rune) rune) string {
	runes := []rune(text)
	if len(runes) == 0 {
		return text
	}
	i := r.IntN(len(runes))
	runes[i] = change(runes[i])
	return string(runes)
}

// JSON is an object in which every mutation of [Arguments] finds something to change.
const JSON = `{"amount":9007199254740993,"to":"Zoë Åberg","note":"café","ratio":1.0,"urgent":false,"items":[1,2,3],"empty":{}}`

// changes are pairs of texts, most of which a careless reader takes for the same.
var changes = [...][2]string{
	{"9007199254740993", "9007199254740992"}, {"9007199254740993", "9007199254740993.0"}, {"9007199254740993", "9.007199254740993e15"},
	{"1.0", "1"}, {"1.0", "1.00"}, {"1.0", "1e0"}, {"1.0", "-1.0"}, {"false", "true"}, {"false", "null"}, {"false", `"false"`},
	{"Zoë", `Zo\u00eb`}, {"Zoë", "Zoe\u0308"}, {"Åberg", "\u212bberg"}, {"café", `caf\u00E9`}, {"Zoë", `\u005aoë`},
	{`"to"`, `"To"`}, {`"to"`, `"\u0074o"`}, {`"to"`, `"tо"`}, {`"amount"`, `"Amount"`},
	{"{", `{"amount":1,`}, {`"empty":{}}`, `"empty":{},"amount":1}`}, {`"empty":{}}`, `"empty":{},"__proto__":{}}`},
	{"[1,2,3]", "[3,2,1]"}, {"[1,2,3]", "[1,2]"}, {"[1,2,3]", "[1,2,3,4]"}, {":", ": "}, {",", " ,"}, {"{", "{ "},
	{`"urgent":false,"items":[1,2,3]`, `"items":[1,2,3],"urgent":false`}, {`"to":"Zoë Åberg",`, ""}, {"{}}", "{}}\n"}, {"{}}", "{}} "},
}

// Arguments changes a JSON object, such as [JSON].
func Arguments(r *rand.Rand, arguments []byte) []byte {
	for {
		is := bytes.Clone(arguments)
		if r.IntN(3) == 0 {
			is = Bit(r, is)
		} else {
			pair := changes[r.IntN(len(changes))]
			is = bytes.Replace(is, []byte(pair[0]), []byte(pair[1]), 1)
		}
		if !bytes.Equal(is, arguments) {
			return is
		}
	}
}

// Proof changes a warrant: a bit, a byte, or its length.
func Proof(r *rand.Rand, proof []byte) []byte {
	for {
		is := bytes.Clone(proof)
		switch r.IntN(6) {
		case 0, 1:
			is = Bit(r, is)
		case 2:
			is = is[:r.IntN(len(is)+1)]
		case 3:
			for range 1 + r.IntN(80) {
				is = append(is, byte(r.Uint32()))
			}
		case 4: // the signature of another warrant
			for i := max(0, len(is)-64); i < len(is); i++ {
				is[i] = byte(r.Uint32())
			}
		case 5: // a piece is left out
			if at := r.IntN(len(is) + 1); at < len(is) {
				is = append(is[:at], is[at+1:]...)
			}
		}
		if !bytes.Equal(is, proof) {
			return is
		}
	}
}

// Bit returns a copy of text with one flipped bit.
func Bit(r *rand.Rand, text []byte) []byte {
	if len(text) == 0 {
		return []byte{byte(r.Uint32())}
	}
	is := bytes.Clone(text)
	is[r.IntN(len(is))] ^= 1 << r.IntN(8)
	return is
}
