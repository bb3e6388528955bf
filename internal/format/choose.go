package format

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/callyard/callyard/pkg/schema"
)

// Weights of where a word stands, and the two constants of BM25.
const (
	nameWeight     = 4
	titleWeight    = 2
	propertyWeight = 0.5
	saturation     = 1.2
	lengthWeight   = 0.6
)

// Terms are the words of one tool with their weights. Tools are found by BM25 over them:
// see [Relevance].
type Terms map[string]float64

// TermsOf returns the words by which a tool is found.
func TermsOf(t *schema.Tool) Terms {
	var def struct {
		Title, Description string
		Annotations        struct{ Title string }
		InputSchema        struct {
			Properties map[string]struct{ Description string }
		}
	}
	_ = json.Unmarshal(t.Raw, &def) // what is odd is left out
	terms := make(Terms)
	add := func(text string, weight float64) {
		for _, w := range words(text) {
			terms[w] += weight
		}
	}
	add(t.Name, nameWeight)
	add(t.Server, titleWeight)
	add(def.Title, titleWeight)
	add(def.Annotations.Title, titleWeight)
	add(def.Description, 1)
	for name, p := range def.InputSchema.Properties {
		add(name, propertyWeight)
		add(p.Description, propertyWeight)
	}
	return terms
}

// Words returns the words of a query, each once and sorted, in the form that they
// have in [Terms].
func Words(query string) []string {
	asked := words(query)
	slices.Sort(asked)
	return slices.Compact(asked)
}

// Length is the length of a tool's text, for [Relevance].
func (t Terms) Length() (length float64) {
	for _, n := range t {
		length += n
	}
	return length
}

// Rarity is what a word is worth that that many of the tools have.
func Rarity(tools, with int) float64 {
	return math.Log(1 + (float64(tools-with)+0.5)/(float64(with)+0.5))
}

// Relevance is what one word of a query adds to the score of a tool that has it with
// the weight n. length is that of the tool, average that of all; see [Rarity] for rare.
func Relevance(rare, n, length, average float64) float64 {
	return rare * n * (saturation + 1) / (n + saturation*(1-lengthWeight+lengthWeight*length/average))
}

// words are the words of a text in lower case, without plural s; names such as
// readTextFile and read_text_file are taken apart.
func words(text string) (all []string) {
	var word strings.Builder
	end := func() {
		if w := word.String(); w != "" {
			if len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
				w = strings.TrimSuffix(w, "s")
			}
			all = append(all, w)
		}
		word.Reset()
	}
	var before rune
	for _, c := range text {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			end()
		case unicode.IsUpper(c) && unicode.IsLower(before):
			end()
			fallthrough
		default:
			word.WriteRune(unicode.ToLower(c))
		}
		before = c
	}
	end()
	return all
}
