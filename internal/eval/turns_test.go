package eval

import (
	"slices"
	"testing"
)

func TestCallsAreScoredOnlyInTheirTurn(t *testing.T) {
	sample := &Sample{ID: "1", Tools: toolsNamed("a", "b"), Expected: []string{"a", "b"}, Turns: []Turn{
		{Question: "One.", Expected: []string{"a"}}, {Question: "Two.", Expected: []string{}}, {Question: "Three.", Expected: []string{"b", "a"}},
	}}
	answer := func(turns ...string) *Response {
		r := &Response{ID: "1", Turns: [][]Step{}}
		for _, text := range turns {
			r.Turns = append(r.Turns, []Step{{Text: text}, {Text: "Done."}})
		}
		return r
	}
	for name, c := range map[string]struct {
		response         *Response
		overall          Type
		precision        float64
		turns            []Type
		extra, repeated  int
		publishedOverall Type
	}{
		"right":               {answer(block("a"), "No.", block("a")+block("B")), TypeCorrect, 1, []Type{TypeCorrect, TypeCorrect, TypeCorrect}, 0, 0, TypeCorrect},
		"in the wrong turns":  {answer(block("b"), block("a"), block("a")+block("b")), TypePartial, 0.5, []Type{TypeWrong, TypeWrong, TypeCorrect}, 2, 0, TypePartial},
		"all in one turn":     {answer(block("a")+block("b")+block("a"), "", ""), TypePartial, 0.5, []Type{TypePartial, TypeCorrect, TypeNone}, 1, 1, TypePartial},
		"one turn too many":   {answer(block("a"), "", block("a")+block("b"), "", block("a")), TypePartial, 0.75, []Type{TypeCorrect, TypeCorrect, TypeCorrect, TypeWrong}, 1, 0, TypePartial},
		"no turns":            {&Response{ID: "1", Text: block("a")}, TypePartial, 1, []Type{TypeCorrect, TypeCorrect, TypeNone}, 0, 0, TypePartial},
		"only lenient":        {answer(`{"name":"a","arguments":{}}`, "", `{"name":"a","arguments":{}} {"name":"b","arguments":{}}`), TypeCorrect, 1, []Type{TypeFormat, TypeCorrect, TypeFormat}, 0, 0, TypeFormat},
		"lenient in one turn": {answer(`{"name":"a","arguments":{}}`, "", block("a")+block("b")), TypeCorrect, 1, []Type{TypeFormat, TypeCorrect, TypeCorrect}, 0, 0, TypePartial},
	} {
		s := scoreAnswer(sample, c.response, preset(t, DefaultReward))
		var types []Type
		for i := range s.Turns {
			types = append(types, s.Turns[i].Published)
		}
		l := s.Lenient
		if l.Type != c.overall || l.Precision != c.precision || l.Extra != c.extra || l.Repeated != c.repeated || s.Published.Type != c.publishedOverall {
			t.Errorf("%s: %+v, published %s", name, l, s.Published.Type)
		}
		if !slices.Equal(types, c.turns) {
			t.Errorf("%s: the turns are %s", name, types)
		}
		if !slices.Equal(s.Expected, []string{"a", "b"}) || !slices.Equal(s.Turns[2].Expected, []string{"b", "a"}) {
			t.Errorf("%s: expected %v, in the third turn %v", name, s.Expected, s.Turns[2].Expected)
		}
	}
}
