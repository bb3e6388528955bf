package eval

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed rewards/*.json
var rewardFiles embed.FS

// Reward holds the constants of a reward: the weighted sum of a term for the selected tools, a term
// for the format of the answer, and terms for the effects of the calls. The published description
// has the first two terms and their form but no constants; the constants of the presets are
// Callyard's.
type Reward struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Selection   RewardSelection `json:"selection"`
	Format      RewardFormat    `json:"format"`
	// Execution rewards the effects of the calls. A preset without it ignores them.
	Execution RewardExecution `json:"execution"`
}

// RewardSelection rewards the selected tools by the F1 of the sample.
type RewardSelection struct {
	Weight float64 `json:"weight"`
	// Extraction is the level whose F1 is used.
	Extraction Level `json:"extraction"`
	// NearPerfect is the reward if F1 is at least NearPerfectF1.
	NearPerfectF1 float64 `json:"near_perfect_f1"`
	NearPerfect   float64 `json:"near_perfect"`
	// Partial is multiplied by an F1 between 0 and NearPerfectF1.
	Partial float64 `json:"partial"`
	// Wrong is the reward if no called tool is expected, and None if no tool is called.
	Wrong float64 `json:"wrong"`
	None  float64 `json:"none"`
	// NoneExpected is the reward if no tool is called and none is expected, and
	// CalledUnexpected if one is called although none is expected.
	NoneExpected     float64 `json:"none_expected"`
	CalledUnexpected float64 `json:"called_unexpected"`
}

// RewardFormat rewards the format of the answer.
type RewardFormat struct {
	Weight float64 `json:"weight"`
	// Good is the reward if there are <tool_call> blocks and all are well-formed. Some is
	// multiplied by the share of well-formed blocks. Bad is the reward if none is.
	Good float64 `json:"good"`
	Some float64 `json:"some"`
	Bad  float64 `json:"bad"`
	// Outside is the reward if there are calls only outside of blocks, None if there are no calls,
	// and NoneExpected if there are none and no tool is expected.
	Outside      float64 `json:"outside"`
	None         float64 `json:"none"`
	NoneExpected float64 `json:"none_expected"`
}

// Rewarded is the reward of one answer: the unweighted terms of selection and format, the sum of
// the execution terms, and the total.
type Rewarded struct {
	Selection float64 `json:"selection"`
	Format    float64 `json:"format"`
	Execution float64 `json:"execution,omitempty"`
	Total     float64 `json:"total"`
}

// DefaultReward is the name of the default preset.
const DefaultReward = "default-1"

// RewardNames returns the names of the presets.
func RewardNames() []string {
	files, err := fs.Glob(rewardFiles, "rewards/*.json")
	if err != nil {
		return nil // the pattern is well-formed
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = strings.TrimSuffix(path.Base(file), ".json")
	}
	return names
}

// RewardPreset returns the preset of that name.
func RewardPreset(name string) (*Reward, error) {
	if !slices.Contains(RewardNames(), name) {
		return nil, fmt.Errorf("there is no reward %q; the rewards are %s", name, strings.Join(RewardNames(), ", "))
	}
	text, err := rewardFiles.ReadFile("rewards/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("reading the reward %s: %w", name, err)
	}
	return ParseReward(text)
}

// ParseReward parses the constants of a reward from JSON. Unknown members are an error.
func ParseReward(text []byte) (*Reward, error) {
	var r Reward
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return nil, fmt.Errorf("the reward cannot be read: %w", err)
	}
	if !slices.Contains(Levels(), r.Selection.Extraction) {
		return nil, fmt.Errorf("selection.extraction of the reward must be strict, published or lenient")
	}
	if r.Name == "" {
		return nil, fmt.Errorf("the reward has no name")
	}
	return &r, nil
}

// of returns the reward of a score. noTool means that no tool is expected. arguments is the share
// of matching arguments, or nil if it does not count.
func (r *Reward) of(s *Score, x *Extracted, noTool bool, arguments *float64) Rewarded {
	out := Rewarded{Selection: r.Selection.of(s.At(r.Selection.Extraction), noTool), Format: r.Format.of(x, noTool)}
	out.Execution = r.Execution.of(s.Execution, arguments)
	out.Total = r.Selection.Weight*out.Selection + r.Format.Weight*out.Format + out.Execution
	return out
}

// Unanswered returns the reward if there is no answer: that of an answer without a call to a
// question that needs one.
func (r *Reward) Unanswered() Rewarded {
	out := Rewarded{Selection: r.Selection.None, Format: r.Format.None}
	out.Total = r.Selection.Weight*out.Selection + r.Format.Weight*out.Format
	return out
}

func (r *RewardSelection) of(s *Selection, noTool bool) float64 {
	switch {
	case noTool && s.Type == TypeCorrect:
		return r.NoneExpected
	case noTool:
		return r.CalledUnexpected
	case s.F1 >= r.NearPerfectF1:
		return r.NearPerfect
	case s.F1 > 0:
		return r.Partial * s.F1
	case s.Type == TypeNone:
		return r.None
	}
	return r.Wrong
}

func (r *RewardFormat) of(x *Extracted, noTool bool) float64 {
	switch {
	case x.Blocks > 0 && x.GoodBlocks == x.Blocks:
		return r.Good
	case x.GoodBlocks > 0:
		return r.Some * float64(x.GoodBlocks) / float64(x.Blocks)
	case x.Blocks > 0:
		return r.Bad
	case len(x.Rescued) > 0:
		return r.Outside
	case noTool:
		return r.NoneExpected
	}
	return r.None
}
