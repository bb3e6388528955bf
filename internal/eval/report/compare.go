package report

import (
	"context"
	"fmt"
	"slices"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/stage"
	"github.com/callyard/callyard/internal/eval/stats"
)

// Comparison compares the samples that two runs share, b minus a.
type Comparison struct {
	Level   eval.Level `json:"level"`
	Samples int        `json:"samples"`
	// OnlyA and OnlyB are the numbers of samples that only one run has. They are ignored.
	OnlyA    int          `json:"only_a"`
	OnlyB    int          `json:"only_b"`
	Settings Settings     `json:"settings"`
	Metrics  []Difference `json:"metrics"`
	// Categories compares the accuracy in each category.
	Categories []Difference `json:"categories,omitempty"`
	// McNemar is the exact test of the accuracy, for runs with one trial.
	McNemar *float64 `json:"mcnemar_p,omitempty"`
	// Gained and Lost are the samples whose accuracy is higher or lower in b.
	Gained []string `json:"gained"`
	Lost   []string `json:"lost"`
}

// Difference is the difference of one metric or one category.
type Difference struct {
	Name string  `json:"name"`
	A    float64 `json:"a"`
	B    float64 `json:"b"`
	stats.Difference
	// Adjusted is P adjusted for all metrics, or all categories, by Holm's method.
	Adjusted float64 `json:"p_adjusted"`
}

// Compare compares two runs at a level. A margin above 0 adds a test for equivalence. It returns an
// error if the runs share no sample, or if a sample differs between them.
func Compare(ctx context.Context, a, b []stage.Score, level eval.Level, margin float64, settings Settings) (*Comparison, error) {
	settings = settings.filled()
	c := &Comparison{Level: level, Settings: settings, Gained: []string{}, Lost: []string{}}
	groupsA, groupsB, err := c.align(a, b)
	if err != nil {
		return nil, err
	}
	ma, mb := &maker{ctx: ctx, settings: settings, groups: groupsA}, &maker{ctx: ctx, settings: settings, groups: groupsB}
	ma.categories()
	values := func(s *stage.Score) []float64 { return append(selection(level)(s), s.Reward.Total) }
	names := append(MetricNames(), "reward")
	columnsA, columnsB := ma.columns(len(names), all, values), mb.columns(len(names), all, values)
	o := ma.options(0)
	if settings.Stratify {
		o.Strata = ma.strata
	}
	for k, name := range names {
		margin := margin
		if name == "reward" {
			margin = 0 // it is not a share, so the margin does not apply
		}
		if err := c.add(ctx, &c.Metrics, name, columnsA[k], columnsB[k], margin, o); err != nil {
			return nil, err
		}
	}
	adjust(c.Metrics)
	accuracyA, accuracyB := columnsA[3], columnsB[3]
	if len(ma.names) > 1 {
		for i, name := range ma.names {
			var inA, inB []float64
			for row, category := range ma.strata {
				if category == i {
					inA, inB = append(inA, accuracyA[row]), append(inB, accuracyB[row])
				}
			}
			if err := c.add(ctx, &c.Categories, name, inA, inB, margin, ma.options(i+1)); err != nil {
				return nil, err
			}
		}
		adjust(c.Categories)
	}
	single := true
	for i := range groupsA {
		single = single && len(groupsA[i]) == 1 && len(groupsB[i]) == 1
		switch id := groupsA[i][0].ID; {
		case accuracyB[i] > accuracyA[i]:
			c.Gained = append(c.Gained, id)
		case accuracyB[i] < accuracyA[i]:
			c.Lost = append(c.Lost, id)
		}
	}
	if single {
		p := stats.McNemar(len(c.Gained), len(c.Lost))
		c.McNemar = &p
	}
	return c, nil
}

// align keeps the samples that both runs have, in the order of the first run.
func (c *Comparison) align(a, b []stage.Score) (groupsA, groupsB [][]*stage.Score, err error) {
	ofB := byID(b)
	for _, g := range group(a) {
		other, ok := ofB[g[0].ID]
		if !ok {
			c.OnlyA++
			continue
		}
		if g[0].Sample != other[0].Sample {
			return nil, nil, fmt.Errorf("the sample %q differs between the runs: score both with the same data", g[0].ID)
		}
		groupsA, groupsB = append(groupsA, g), append(groupsB, other)
	}
	c.Samples, c.OnlyB = len(groupsA), len(ofB)-len(groupsA)
	if c.Samples == 0 {
		return nil, nil, fmt.Errorf("the runs have no sample in common")
	}
	return groupsA, groupsB, nil
}

// byID returns the trials of each sample.
func byID(scores []stage.Score) map[string][]*stage.Score {
	of := map[string][]*stage.Score{}
	for i := range scores {
		of[scores[i].ID] = append(of[scores[i].ID], &scores[i])
	}
	return of
}

func (c *Comparison) add(ctx context.Context, to *[]Difference, name string, a, b []float64, margin float64, o stats.Options) error {
	d, err := stats.Compare(ctx, a, b, margin, o)
	if err != nil {
		return err
	}
	*to = append(*to, Difference{Name: name, A: stats.Mean(a), B: stats.Mean(b), Difference: d})
	return nil
}

func adjust(all []Difference) {
	p := make([]float64, len(all))
	for i := range all {
		p[i] = all[i].P
	}
	for i, adjusted := range stats.Holm(p) {
		all[i].Adjusted = adjusted
	}
}

// Differing is a sample that two runs answer differently, or that a run answers incorrectly.
type Differing struct {
	ID, Category string
	Expected     []string
	// A and B are the tools that each run called in its first trial, with their types.
	A, B         []string
	TypeA, TypeB eval.Type
	// Better means that b is correct and a is not.
	Better bool
}

// differing returns the samples whose type differs between two runs, at most limit.
func differing(a, b []stage.Score, level eval.Level, limit int) (out []Differing) {
	ofB := byID(b)
	for _, g := range group(a) {
		other := ofB[g[0].ID]
		if len(other) == 0 || len(out) == limit || g[0].At(level).Type == other[0].At(level).Type && slices.Equal(g[0].Called, other[0].Called) {
			continue
		}
		x, y := g[0], other[0]
		out = append(out, Differing{
			x.ID, categoryOf(x), x.Expected, x.Called, y.Called, x.At(level).Type, y.At(level).Type, y.At(level).Accuracy > x.At(level).Accuracy,
		})
	}
	return out
}

// Wrong returns the incorrect answers of a run, at most limit.
func Wrong(scores []stage.Score, level eval.Level, limit int) (out []Differing) {
	for i := range scores {
		if s := &scores[i]; s.At(level).Type != eval.TypeCorrect && len(out) < limit {
			out = append(out, Differing{ID: s.ID, Category: categoryOf(s), Expected: s.Expected, A: s.Called, TypeA: s.At(level).Type})
		}
	}
	return out
}
