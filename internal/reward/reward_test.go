package reward

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/pkg/schema"
)

var tools = []eval.Tool{
	{Name: "read", Server: "files", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"}},"required":["path"]}`)},
	{Name: "write", Server: "files", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}},"required":["path","text"]}`)},
}

func call(name, args string, o Outcome) Call {
	return Call{Name: name, Arguments: json.RawMessage(args), Outcome: o}
}

func TestRewardTerms(t *testing.T) {
	yes, no := true, false
	block := "<tool_call>\n{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}\n</tool_call>"
	for name, test := range map[string]struct {
		item    Item
		weights Weights
		want    float64
	}{
		"selected and well-formed text": {Item{Completion: block, Expected: []string{"read"}}, nil, 3},
		"selected calls of an API":      {Item{Calls: []Call{call("read", `{}`, "")}, Expected: []string{"read"}}, nil, 3},
		"expected from labelled calls":  {Item{Completion: block, ExpectedCalls: []eval.LabelledCall{{Name: "read"}}}, nil, 3},
		"calls of an API next to text":  {Item{Completion: "I read it.", Calls: []Call{call("read", `{}`, "")}, Expected: []string{"read"}}, nil, 3},
		"a text with a damaged block":   {Item{Completion: "<tool_call>read", Calls: []Call{call("read", `{}`, "")}, Expected: []string{"read"}}, nil, -1.5 - 0.5},
		"wrong tool":                    {Item{Calls: []Call{call("write", `{}`, "")}, Expected: []string{"read"}}, nil, -1 + 1},
		"nothing was called":            {Item{Completion: "no", Expected: []string{"read"}}, nil, -1.5 - 1},
		"arguments all valid":           {Item{Calls: []Call{call("write", `{"path":"a","text":"b"}`, "")}, Expected: []string{"write"}}, only(Arguments), 1},
		"a required one is missing":     {Item{Calls: []Call{call("write", `{"path":"a"}`, "")}, Expected: []string{"write"}}, only(Arguments), 2.0 / 3},
		"an argument is invalid":        {Item{Calls: []Call{call("read", `{"path":"a","limit":"x"}`, "")}, Expected: []string{"read"}}, only(Arguments), 2.0 / 3},
		"an unknown tool":               {Item{Calls: []Call{call("rm", `{}`, "")}, Expected: []string{"read"}}, only(Arguments), 0},
		"half of the calls ran":         {Item{Calls: []Call{call("read", `{}`, OK), call("read", `{}`, ToolError)}, Expected: []string{"read"}}, only(Execution), 0.5},
		"no call was right":             {Item{}, only(Execution), 1},
		"equal states":                  {Item{State: "x", ExpectedState: "x"}, only(State), 1},
		"different states":              {Item{State: "x", ExpectedState: "y"}, only(State), 0},
		"success":                       {Item{Success: &yes}, only(Success), 1},
		"success condition is false":    {Item{Success: &no}, only(Success), 0},
		"risk above the limit":          {Item{MaxRisk: 1, Calls: []Call{{Name: "read", Risk: 2}}}, only(Risk), -1},
		"risk within the limit":         {Item{MaxRisk: 2, Calls: []Call{{Name: "read", Risk: 2}}}, only(Risk), 0},
		"a denied call":                 {Item{Calls: []Call{call("read", `{}`, Denied)}}, only(Risk), -1},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New("", test.weights)
			if err != nil {
				t.Fatal(err)
			}
			test.item.Tools = tools
			got := s.Score(&test.item)
			if got.Masked || got.Reward == nil || *got.Reward != test.want {
				t.Errorf("got %+v, want %v", got, test.want)
			}
		})
	}
}

// only returns weights for a single term.
func only(t Term) Weights { return Weights{Selection: 0, Format: 0, t: 1} }

func TestItemWithoutAValidResultIsMaskedNotZero(t *testing.T) {
	for name, test := range map[string]struct {
		item Item
		term Term
		kind string
	}{
		"a worker was lost":     {Item{FailureKind: "worker-lost", Calls: []Call{call("read", `{}`, OK)}}, Selection, "worker-lost"},
		"the calls did not run": {Item{Calls: []Call{call("read", `{}`, "")}}, Execution, FailureMissing},
		"no state is known":     {Item{ExpectedState: "x"}, State, FailureMissing},
		"no condition is known": {Item{}, Success, FailureMissing},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New("", only(test.term))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Score(&test.item); !got.Masked || got.Reward != nil || got.FailureKind != test.kind {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestInvalidRequestsAreRefusedWithAReason(t *testing.T) {
	for body, want := range map[string]string{
		`{"items":[{"completions":"x"}]}`:                                      "completions",
		`{"preset":"other","items":[]}`:                                        "there is no reward",
		`{"weights":{"style":1},"items":[]}`:                                   "there is no term",
		`{"items":[{"expected":[],"calls":[{"name":"a","outcome":"great"}]}]}`: "outcome",
		`{"items":[` + strings.Repeat(`{},`, MaxItems) + `{}` + `]}`:           "at most 1024",
		`[]`: "cannot be read",
	} {
		var s Service
		if _, err := s.Score([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", body, err, want)
		}
	}
}

func TestItemsWithoutAnswerOrLabelAreRefused(t *testing.T) {
	for body, want := range map[string][]string{
		`{"items":[{"completion":"x","expected":["a"]},{"completion":"x"}]}`:                                     {"/items/1"},
		`{"items":[{"expected":["a"]}]}`:                                                                         {"/items/0"},
		`{"items":[{"id":"a"}]}`:                                                                                 {"/items/0", "/items/0"},
		`{"items":[{"completion":null,"expected":null}]}`:                                                        {"/items/0", "/items/0"},
		`{"items":[{"completion":"","expected":[]}]}`:                                                            nil,
		`{"items":[{"calls":[],"expected_calls":[]}]}`:                                                           nil,
		`{"items":[{"failure_kind":"worker-lost"}]}`:                                                             nil,
		`{"weights":{"selection":0,"format":0,"state":1},"items":[{"state":"a","expected_state":"a"}]}`:          nil,
		`{"weights":{"selection":0,"format":0,"execution":1},"items":[{"calls":[{"name":"a","outcome":"ok"}]}]}`: {"/items/0"},
	} {
		var s Service
		_, err := s.Score([]byte(body))
		var got []string
		if err != nil {
			for _, fault := range schema.AsError(err).Faults {
				got = append(got, fault.Pointer)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: faults at %q, want %q (%v)", body, got, want, err)
		}
	}
	var s Service
	_, err := s.Score([]byte(`{"items":[` + strings.Repeat(`{},`, maxFaults) + `{}]}`))
	if faults := schema.AsError(err).Faults; len(faults) != maxFaults+1 || faults[maxFaults].Message != "and 22 more" {
		t.Errorf("an error lists %d faults: %v", len(faults), faults)
	}
}

// request returns a request of n items with all terms except those that need execution.
func request(t testing.TB, n int) []byte {
	q := Request{Weights: Weights{Arguments: 0.5, Risk: 1}}
	for i := range n {
		item := Item{ID: fmt.Sprint(i), Tools: tools, Expected: []string{"read"}, MaxRisk: 1}
		item.Completion = fmt.Sprintf("I read it.\n<tool_call>\n{\"name\":%q,\"arguments\":{\"path\":\"/tmp/%d\"}}\n</tool_call>", tools[i%2].Name, i)
		q.Items = append(q.Items, item)
	}
	body, err := json.Marshal(&q)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestConcurrentScoringGivesTheSameRewards(t *testing.T) {
	var s Service
	body := request(t, 200)
	want, err := s.Score(body)
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			var other Service
			for range 3 {
				if got, err := other.Score(body); err != nil || !bytes.Equal(got, want) {
					t.Errorf("the rewards differ (%v)", err)
				}
			}
		})
	}
	work.Wait()
}

// BenchmarkRewards reports the number of items that one request scores per second, including JSON
// decoding and encoding.
func BenchmarkRewards(b *testing.B) {
	var s Service
	body := request(b, MaxItems)
	for b.Loop() {
		if _, err := s.Score(body); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*MaxItems)/b.Elapsed().Seconds(), "items/s")
}

func FuzzScore(f *testing.F) {
	f.Add(request(f, 2))
	f.Add([]byte(`{"weights":{"arguments":1},"items":[{"calls":[{"name":"a","arguments":[1]}],"tools":[{"name":"a","input_schema":{"required":3}}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var one, two Service
		a, errA := one.Score(body)
		b, errB := two.Score(body)
		if (errA == nil) != (errB == nil) || !bytes.Equal(a, b) {
			t.Errorf("two services disagree: %s (%v), %s (%v)", a, errA, b, errB)
		}
	})
}
