package stage

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// madeCall is a call in a generated conversation.
type madeCall struct {
	name      string
	arguments json.RawMessage
}

// damager generates conversations from labels.
type damager struct {
	*rand.Rand
	samples []Sample
}

// damage changes the calls of the turns of a sample.
type damage struct {
	name string
	do   func(d damager, s *Sample, turns [][]madeCall) [][]madeCall
}

// damages are the kinds of damage. Some do not change the effects.
var damages = []damage{
	{"none", func(_ damager, _ *Sample, turns [][]madeCall) [][]madeCall { return turns }},
	{"a call is missing", func(d damager, _ *Sample, turns [][]madeCall) [][]madeCall {
		turn, n := d.pick(turns)
		turns[turn] = slices.Delete(turns[turn], n, n+1)
		return turns
	}},
	{"a call is repeated", func(d damager, _ *Sample, turns [][]madeCall) [][]madeCall {
		turn, n := d.pick(turns)
		turns[turn] = slices.Insert(turns[turn], n, turns[turn][n])
		return turns
	}},
	{"a turn in reverse", func(d damager, _ *Sample, turns [][]madeCall) [][]madeCall {
		turn, _ := d.pick(turns)
		slices.Reverse(turns[turn])
		return turns
	}},
	{"a turn is empty", func(d damager, _ *Sample, turns [][]madeCall) [][]madeCall {
		turn, _ := d.pick(turns)
		turns[turn] = nil
		return turns
	}},
	{"a call is made one turn too early", func(d damager, _ *Sample, turns [][]madeCall) [][]madeCall {
		turn, _ := d.pick(turns)
		if turn == 0 {
			return turns
		}
		turns[turn-1] = append(turns[turn-1], turns[turn][0])
		if d.IntN(2) == 0 {
			turns[turn] = turns[turn][1:]
		}
		return turns
	}},
	{"the last turn is missing", func(_ damager, _ *Sample, turns [][]madeCall) [][]madeCall { return turns[:len(turns)-1] }},
	{"a turn too many", func(_ damager, _ *Sample, turns [][]madeCall) [][]madeCall { return append(turns, turns[0]) }},
	{"a value is another", func(d damager, _ *Sample, turns [][]madeCall) [][]madeCall {
		return d.change(turns, func(v any) any { return d.other(v) })
	}},
	{"a number is a float", func(d damager, _ *Sample, turns [][]madeCall) [][]madeCall {
		return d.change(turns, func(v any) any {
			if n, ok := v.(json.Number); ok && !strings.ContainsAny(n.String(), ".eE") {
				return json.Number(n.String() + ".0")
			}
			return v
		})
	}},
	{"a value is a text", func(d damager, _ *Sample, turns [][]madeCall) [][]madeCall {
		return d.change(turns, func(v any) any { return fmt.Sprint(v) })
	}},
	{"an argument is missing", func(d damager, _ *Sample, turns [][]madeCall) [][]madeCall {
		return d.members(turns, func(members map[string]any, key string) { delete(members, key) })
	}},
	{"an argument has another name", func(d damager, _ *Sample, turns [][]madeCall) [][]madeCall {
		return d.members(turns, func(members map[string]any, key string) {
			members[[]string{"x", "x y", "class", "file_name"}[d.IntN(4)]] = members[key]
			delete(members, key)
		})
	}},
	{"a function of nobody", func(d damager, _ *Sample, turns [][]madeCall) [][]madeCall {
		return d.insert(turns, madeCall{[]string{"nothing", "kill", "CD"}[d.IntN(3)], json.RawMessage(`{"x":1}`)})
	}},
	{"a hidden function", func(d damager, s *Sample, turns [][]madeCall) [][]madeCall {
		if len(s.Check.Hidden) == 0 {
			return turns
		}
		return d.insert(turns, madeCall{s.Check.Hidden[0], json.RawMessage(`{"source":"a.txt","destination":"b.txt"}`)})
	}},
	{"a call of the same sample more", func(d damager, _ *Sample, turns [][]madeCall) [][]madeCall {
		turn, n := d.pick(turns)
		return d.insert(turns, turns[turn][n])
	}},
	{"a call of another sample more", func(d damager, _ *Sample, turns [][]madeCall) [][]madeCall {
		labels := d.samples[d.IntN(len(d.samples))].Labels
		label := labels[d.IntN(len(labels))]
		return d.insert(turns, madeCall{label.Name, label.Arguments})
	}},
	{"a call without arguments more", func(d damager, s *Sample, turns [][]madeCall) [][]madeCall {
		return d.insert(turns, madeCall{s.Tools[d.IntN(len(s.Tools))].Name, json.RawMessage(`{}`)})
	}},
}

// make returns a correct answer to a sample with one kind of damage, or none.
func (d damager) make(s *Sample) conversation {
	turns := make([][]madeCall, s.Check.Turns)
	for _, label := range s.Labels {
		turns[label.Turn] = append(turns[label.Turn], madeCall{label.Name, label.Arguments})
	}
	kind := damages[d.IntN(len(damages))]
	turns = kind.do(d, s, turns)
	out := conversation{ID: s.ID, Turns: make([][][]map[string]json.RawMessage, len(turns)), damage: kind.name}
	for i, calls := range turns {
		out.Turns[i] = [][]map[string]json.RawMessage{}
		for n, c := range calls { // make some calls in one step and some one after the other
			call := map[string]json.RawMessage{c.name: c.arguments}
			if n == 0 || d.IntN(2) == 0 {
				out.Turns[i] = append(out.Turns[i], nil)
			}
			last := &out.Turns[i][len(out.Turns[i])-1]
			*last = append(*last, call)
		}
	}
	return out
}

// pick selects a call.
func (d damager) pick(turns [][]madeCall) (turn, n int) {
	for {
		if turn = d.IntN(len(turns)); len(turns[turn]) > 0 {
			return turn, d.IntN(len(turns[turn]))
		}
	}
}

func (d damager) insert(turns [][]madeCall, c madeCall) [][]madeCall {
	turn := d.IntN(len(turns))
	turns[turn] = slices.Insert(turns[turn], d.IntN(len(turns[turn])+1), c)
	return turns
}

// members changes the arguments of a call; key is one of them.
func (d damager) members(turns [][]madeCall, do func(members map[string]any, key string)) [][]madeCall {
	for range 20 { // until a call has arguments
		turn, n := d.pick(turns)
		decoder := json.NewDecoder(strings.NewReader(string(turns[turn][n].arguments)))
		decoder.UseNumber()
		var members map[string]any
		if decoder.Decode(&members) != nil || len(members) == 0 {
			continue
		}
		keys := slices.Sorted(maps.Keys(members))
		do(members, keys[d.IntN(len(keys))])
		if raw, err := json.Marshal(members); err == nil {
			turns[turn][n].arguments = raw
		}
		break
	}
	return turns
}

func (d damager) change(turns [][]madeCall, do func(any) any) [][]madeCall {
	return d.members(turns, func(members map[string]any, key string) { members[key] = do(members[key]) })
}

// other returns a different value, often of the same type.
func (d damager) other(v any) any {
	values := []any{nil, true, "it's \"x\" (y)\n\\ é", json.Number("7"), json.Number("0.5"), []any{"a", json.Number("1")}, map[string]any{"a": false}}
	switch v := v.(type) {
	case string:
		values = append(values, v+"x", strings.ToUpper(v), "sort (x)", v+" ")
	case bool:
		values = append(values, !v, json.Number("1"))
	case json.Number:
		values = append(values, json.Number("0"), json.Number(v.String()+"1"))
	}
	return values[d.IntN(len(values))]
}
