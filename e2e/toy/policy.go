package toy

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
)

// Forms of an answer.
const (
	formTagged    = iota // a call in a <tool_call> block, which is the right form
	formFenced           // a call in a fenced block of JSON
	formMalformed        // a call in a <tool_call> block that is not JSON
	formNone             // a sentence without a call
	forms
)

// choice is a choice of the policy: a form and, unless that is formNone, a tool. Each of the
// two is a token of the answer.
type choice struct{ form, tool int }

// tokens returns the length of the answer.
func (c choice) tokens() int {
	if c.form == formNone {
		return 1
	}
	return 2
}

// features are the hashed words of a question, and pairs of them, with equal weights.
const hashed = 1 << 12

type features struct {
	at     []int
	weight float64
}

func featuresOf(question string) features {
	words := strings.FieldsFunc(strings.ToLower(question), func(r rune) bool { return !(r >= 'a' && r <= 'z' || r == '-') })
	f := features{at: []int{0}} // a constant feature
	add := func(s string) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(s)) // it never fails
		f.at = append(f.at, 1+int(h.Sum32()%(hashed-1)))
	}
	for i, w := range words {
		add(w)
		if i > 0 {
			add(words[i-1] + " " + w)
		}
	}
	f.weight = 1 / math.Sqrt(float64(len(f.at)))
	return f
}

// policy is a linear softmax over forms and one over tools.
type policy struct{ form, tool [][]float64 }

func newPolicy(tools int) *policy {
	rows := func(n int) [][]float64 {
		out := make([][]float64, n)
		for i := range out {
			out[i] = make([]float64, hashed)
		}
		return out
	}
	return &policy{form: rows(forms), tool: rows(tools)}
}

// softmax returns the probabilities of the rows for a question.
func softmax(rows [][]float64, f features) []float64 {
	p := make([]float64, len(rows))
	high := math.Inf(-1)
	for i, row := range rows {
		for _, at := range f.at {
			p[i] += row[at] * f.weight
		}
		high = max(high, p[i])
	}
	sum := 0.0
	for i := range p {
		p[i] = math.Exp(p[i] - high)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

func draw(p []float64, with *rand.Rand) int {
	at := with.Float64()
	for i := range p {
		if at -= p[i]; at < 0 {
			return i
		}
	}
	return len(p) - 1
}

// sample draws a choice.
func (p *policy) sample(f features, with *rand.Rand) choice {
	c := choice{form: draw(softmax(p.form, f), with)}
	if c.form != formNone {
		c.tool = draw(softmax(p.tool, f), with)
	}
	return c
}

// probabilities returns the probabilities of the tokens of a choice.
func (p *policy) probabilities(f features, c choice) []float64 {
	out := []float64{softmax(p.form, f)[c.form]}
	if c.form != formNone {
		out = append(out, softmax(p.tool, f)[c.tool])
	}
	return out
}

// climb makes the chosen row more likely, by by times the gradient of
// the logarithm of its probability.
func climb(rows [][]float64, f features, chosen int, by float64) {
	p := softmax(rows, f)
	for i, row := range rows {
		slope := -p[i]
		if i == chosen {
			slope++
		}
		for _, at := range f.at {
			row[at] += by * slope * f.weight
		}
	}
}
