package eval

import (
	"encoding/json"
	"math"
	"testing"
)

// TestTheArgumentsTermOfTheExecutionReward gives answers whose calls have the right tool and
// differ in their arguments: the term is the mean over the calls of the share of required
// arguments that are given and the share of given arguments that fit, times its weight.
func TestTheArgumentsTermOfTheExecutionReward(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"lines":{"type":"integer"},"a/b":{"type":"integer"}},"required":["path","lines"]}`)
	sample := &Sample{Tools: []Tool{{Name: "read", Schema: schema}, {Name: "free"}, {Name: "odd", Schema: json.RawMessage(`{"type":7}`)}}, Expected: []string{"read"}}
	call := func(name, arguments string) string {
		return `<tool_call>{"name":"` + name + `","arguments":` + arguments + `}</tool_call>`
	}
	for text, want := range map[string]float64{
		call("read", `{"path":"x","lines":3}`):                        1,
		call("read", `{"path":"x"}`):                                  (0.5 + 1) / 2,
		call("read", `{"path":"x","lines":"3"}`):                      (1 + 0.5) / 2,
		call("read", `{"path":7,"lines":"3"}`):                        0.5,
		call("read", `{}`):                                            (0 + 1) / 2.0,
		call("read", `{"path":"x","lines":3,"a/b":"no","free":true}`): (1 + 0.75) / 2,
		call("read", `[1]`):                                           0,
		call("free", `{"anything":1}`):                                1,
		call("odd", `{"anything":1}`):                                 1, // its schema forbids nothing
		call("other", `{"path":"x","lines":3}`):                       0, // not offered
		call("read", `{"path":"x","lines":3}`) + call("other", `{}`):  0.5,
		"No call.": 0,
	} {
		score := scoreAnswer(sample, &Response{Text: text}, preset(t, "execution-1"))
		if got := score.Reward.Execution; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: the term is %v, want %v", text, got, want)
		}
		if total := score.Reward.Selection + score.Reward.Format + score.Reward.Execution; math.Abs(score.Reward.Total-total) > 1e-9 {
			t.Errorf("%s: the terms sum up to %v, and the total is %v", text, total, score.Reward.Total)
		}
		if other := scoreAnswer(sample, &Response{Text: text}, preset(t, "default-1")).Reward; other.Execution != 0 {
			t.Errorf("%s: without a weight the term is %v", text, other.Execution)
		}
		heavy := *preset(t, "execution-1")
		heavy.Execution.Arguments = 3
		if got := scoreAnswer(sample, &Response{Text: text}, &heavy).Reward.Execution; math.Abs(got-3*want) > 1e-9 {
			t.Errorf("%s: with the weight 3 the term is %v", text, got)
		}
	}
}
