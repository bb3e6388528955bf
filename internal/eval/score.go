package eval

import (
	"slices"
	"strconv"
	"strings"
)

// Type is the failure type of an answer, or TypeCorrect.
type Type string

const (
	TypeCorrect Type = "correct" // the called tools are the expected tools
	TypePartial Type = "partial" // some expected tools are called, and some are missing or others are called too
	TypeWrong   Type = "wrong"   // tools are called, and none of them is expected
	TypeNone    Type = "none"    // no call is found, and a tool was expected
	TypeFormat  Type = "format"  // calls are found only outside of well-formed <tool_call> blocks
)

// Types returns all types, in the order in which reports show them.
func Types() []Type { return []Type{TypeCorrect, TypePartial, TypeWrong, TypeNone, TypeFormat} }

// Selection compares the set of called tools with the set of expected tools.
type Selection struct {
	Type      Type    `json:"type"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
	// Accuracy is 1 if the sets are equal, otherwise 0.
	Accuracy float64 `json:"accuracy"`
	// Extra and Missing count tools that are only called and only expected. Repeated counts further
	// calls of a tool.
	Extra    int `json:"extra,omitempty"`
	Missing  int `json:"missing,omitempty"`
	Repeated int `json:"repeated,omitempty"`
}

// Score is the score of one answer.
type Score struct {
	ID       string `json:"id"`
	Trial    int    `json:"trial,omitempty"`
	Category string `json:"category,omitempty"`
	// Called are the tools found by lenient extraction, in order and without duplicates, with their
	// names in the sample. Expected are the expected tools.
	Called    []string  `json:"called"`
	Expected  []string  `json:"expected"`
	Strict    Selection `json:"strict"`
	Published Selection `json:"published"`
	Lenient   Selection `json:"lenient"`
	// Turns are the turns of a sample whose calls are expected turn by turn, and one more if the
	// answer has calls after the last of them.
	Turns []TurnScore `json:"turns,omitempty"`
	// Reward is the reward of the chosen preset.
	Reward Rewarded `json:"reward"`
	// Similar is 1 or 0: the accuracy at the level published if similar tools of the data set are
	// accepted as well. It is nil if the sample has none.
	Similar *float64 `json:"accuracy_with_similar,omitempty"`
	// Check is the verdict of the data set's checker, if it has one.
	Check *Verdict `json:"check,omitempty"`
	// Execution is the outcome of the calls, if they were run.
	Execution *Execution `json:"execution,omitempty"`
}

// TurnScore compares the called tools of one turn with its expected tools.
type TurnScore struct {
	// Called and Expected are as in [Score].
	Called   []string `json:"called"`
	Expected []string `json:"expected"`
	// Strict, Published and Lenient are the type of the turn at each level.
	Strict    Type `json:"strict"`
	Published Type `json:"published"`
	Lenient   Type `json:"lenient"`
}

// At returns the type at a level.
func (t *TurnScore) At(level Level) Type {
	switch level {
	case Strict:
		return t.Strict
	case Lenient:
		return t.Lenient
	}
	return t.Published
}

// Verdict is the result of a data set's checker.
type Verdict struct {
	Valid bool `json:"valid"`
	// Error is the type of the first fault; "" for a valid answer.
	Error string `json:"error,omitempty"`
}

// At returns the selection at a level.
func (s *Score) At(level Level) *Selection {
	switch level {
	case Strict:
		return &s.Strict
	case Lenient:
		return &s.Lenient
	}
	return &s.Published
}

// Prepared is a sample with parsed names, for scoring several answers.
type Prepared struct {
	Sample   *Sample
	Names    *Names
	expected []string // keys without duplicates
}

// Prepare parses the names of a sample.
func Prepare(sample *Sample) *Prepared {
	p := &Prepared{Sample: sample, Names: NewNames(sample.Tools)}
	if len(sample.Turns) == 0 {
		p.expected = p.keysOf(sample.Expected, "")
	}
	for turn := range sample.Turns {
		p.expected = append(p.expected, p.keysOf(sample.Turns[turn].Expected, turnPrefix(turn))...)
	}
	return p
}

// Score scores one answer to the sample.
func (p *Prepared) Score(response *Response, reward *Reward) Score {
	x := Extract(response, p.Sample.Tools, p.Names)
	return p.ScoreExtracted(response, &x, reward, nil)
}

// ScoreExtracted scores an answer whose calls were extracted before. executed is their outcome, or
// nil if they were not run.
func (p *Prepared) ScoreExtracted(response *Response, x *Extracted, reward *Reward, executed *Execution) Score {
	strict, rescued := p.keys(x.Calls), p.keys(x.Rescued)
	s := Score{ID: p.Sample.ID, Trial: response.Trial, Category: p.Sample.Category, Called: p.reportNames(rescued), Expected: p.reportNames(p.expected)}
	s.Turns = p.turns(strict, rescued)
	s.Strict = compare(strict, p.wanted(strict), len(x.Calls))
	s.Lenient = compare(rescued, p.wanted(rescued), len(x.Rescued))
	s.Published = s.Strict
	if len(strict) == 0 && len(rescued) > 0 {
		s.Published = Selection{Type: TypeFormat, Extra: s.Lenient.Extra, Missing: s.Lenient.Missing, Repeated: s.Lenient.Repeated}
	}
	s.Similar = p.similar(strict)
	s.Execution = executed
	var arguments *float64
	if reward.Execution.Arguments != 0 {
		arguments = p.arguments(x.Rescued)
	}
	s.Reward = reward.of(&s, x, len(p.expected) == 0, arguments)
	return s
}

// similar returns the accuracy of called tools if each labelled call accepts similar tools: each
// label is called by one of its names, and nothing else is called.
func (p *Prepared) similar(called []string) *float64 {
	known, right := false, true
	accepted := make(map[string]bool)
	for i := range p.Sample.Labels {
		label := &p.Sample.Labels[i]
		known = known || len(label.Similar) > 0
		hit := false
		for _, name := range append([]string{label.Name}, label.Similar...) {
			key := p.Names.Key(name)
			accepted[key] = true
			hit = hit || slices.Contains(called, key)
		}
		right = right && hit
	}
	if !known {
		return nil
	}
	for _, key := range called {
		right = right && accepted[key]
	}
	value := 0.0
	if right {
		value = 1
	}
	return &value
}

// wanted returns the expected tools. If any of them is correct, it returns one.
func (p *Prepared) wanted(called []string) []string {
	if !p.Sample.AnyExpected || len(p.expected) == 0 {
		return p.expected
	}
	var hits []string
	for _, key := range called {
		if slices.Contains(p.expected, key) {
			hits = append(hits, key)
		}
	}
	if len(hits) == 0 {
		return p.expected[:1]
	}
	return hits
}

// keys returns the keys of the called tools in order, without duplicates. If the sample expects
// calls turn by turn, the keys include the turn.
func (p *Prepared) keys(calls []Call) (keys []string) {
	for i := range calls {
		key := p.Names.Key(calls[i].Name)
		if len(p.Sample.Turns) > 0 {
			key = turnPrefix(min(calls[i].Turn, len(p.Sample.Turns))) + key
		}
		keys = appendNew(keys, key)
	}
	return keys
}

// keysOf returns the keys of names after a prefix, in order and without duplicates.
func (p *Prepared) keysOf(names []string, prefix string) (keys []string) {
	for _, name := range names {
		keys = appendNew(keys, prefix+p.Names.Key(name))
	}
	return keys
}

// turnPrefix returns the prefix of the keys of a turn. A call counts for its turn only.
func turnPrefix(turn int) string { return strconv.Itoa(turn) + turnEnd }

const turnEnd = ":"

// turns compares each turn separately. It returns nil for a sample that does not expect calls turn
// by turn.
func (p *Prepared) turns(strict, rescued []string) (all []TurnScore) {
	if len(p.Sample.Turns) == 0 {
		return nil
	}
	last := len(p.Sample.Turns) - 1
	for _, key := range rescued {
		last = max(last, turnOf(key))
	}
	for turn := range last + 1 {
		other := func(key string) bool { return turnOf(key) != turn }
		of := func(keys []string) []string { return slices.DeleteFunc(slices.Clone(keys), other) }
		expected, strict, rescued := of(p.expected), of(strict), of(rescued)
		t := TurnScore{Called: p.reportNames(rescued), Expected: p.reportNames(expected)}
		t.Strict = compare(strict, expected, len(strict)).Type
		t.Lenient = compare(rescued, expected, len(rescued)).Type
		t.Published = t.Strict
		if len(strict) == 0 && len(rescued) > 0 {
			t.Published = TypeFormat
		}
		all = append(all, t)
	}
	return all
}

// turnOf returns the turn of a key that starts with [turnPrefix].
func turnOf(key string) int {
	prefix, _, _ := strings.Cut(key, turnEnd)
	turn, _ := strconv.Atoi(prefix) // it was written by turnPrefix
	return turn
}

// reportNames returns keys as names for reports, without duplicates.
func (p *Prepared) reportNames(keys []string) []string {
	names := make([]string, 0, len(keys))
	for _, key := range keys {
		if len(p.Sample.Turns) > 0 {
			_, key, _ = strings.Cut(key, turnEnd)
		}
		if name, unknown := strings.CutPrefix(key, unknownTool); unknown && name != "" {
			key = name
		}
		names = appendNew(names, key)
	}
	return names
}

// compare computes the metrics of two sets. If both are empty, all metrics are 1. If one is empty,
// all are 0. F1 is 0 if precision and recall are.
func compare(called, expected []string, calls int) Selection {
	hits := 0
	for _, key := range called {
		if slices.Contains(expected, key) {
			hits++
		}
	}
	s := Selection{Extra: len(called) - hits, Missing: len(expected) - hits, Repeated: calls - len(called)}
	switch {
	case len(called) == 0 && len(expected) == 0:
		s.Precision, s.Recall, s.F1 = 1, 1, 1
	case hits > 0:
		s.Precision = float64(hits) / float64(len(called))
		s.Recall = float64(hits) / float64(len(expected))
		s.F1 = 2 * s.Precision * s.Recall / (s.Precision + s.Recall)
	}
	switch {
	case s.Extra == 0 && s.Missing == 0:
		s.Type, s.Accuracy = TypeCorrect, 1
	case len(called) == 0:
		s.Type = TypeNone
	case hits == 0:
		s.Type = TypeWrong
	default:
		s.Type = TypePartial
	}
	return s
}
