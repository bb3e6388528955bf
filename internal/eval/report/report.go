package report

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/stage"
	"github.com/callyard/callyard/internal/eval/stats"
)

// revision is the revision of the report format. Increase it with every change of the content.
const revision = 3

// Settings change a report, in addition to the settings of the scores.
type Settings struct {
	Iterations int     `json:"iterations"`
	Seed       uint64  `json:"seed"`
	Confidence float64 `json:"confidence"`
	// Stratify draws samples within each category.
	Stratify bool `json:"stratify"`
}

// filled replaces zeros by defaults.
func (s Settings) filled() Settings {
	s.Iterations = cmp.Or(s.Iterations, stats.DefaultIterations)
	s.Seed = cmp.Or(s.Seed, stats.DefaultSeed)
	s.Confidence = cmp.Or(s.Confidence, stats.DefaultConfidence)
	return s
}

// Report is the content of report.json.
type Report struct {
	// Inputs is the digest of everything that determines the report.
	Inputs  string `json:"inputs"`
	Version string `json:"version"`
	// Data is the data set as it was named, and SamplesDigest the digest of its samples.
	Data          string         `json:"data,omitempty"`
	SamplesDigest string         `json:"samples_digest"`
	Samples       int            `json:"samples"`
	Answers       int            `json:"answers"`
	Trials        int            `json:"trials"`
	Unanswered    int            `json:"unanswered"`
	Skipped       []string       `json:"skipped,omitempty"`
	Settings      Settings       `json:"settings"`
	Scoring       stage.Settings `json:"scoring"`
	Rules         []string       `json:"rules"`
	Levels        []Level        `json:"levels"`
	Rewards       []Reward       `json:"rewards"`
	// Similar is the accuracy at the level published if similar tools of the data set are accepted
	// as well. For samples without similar tools it is their accuracy.
	Similar *stats.Estimate `json:"accuracy_with_similar,omitempty"`
	// Check is the share of answers that the data set's checker accepts.
	Check *Checked `json:"check,omitempty"`
	// Executed summarizes the outcomes of the answers' calls, if they were run.
	Executed *Executed `json:"executed,omitempty"`
	Pass     []Pass    `json:"pass,omitempty"`
	// Turns are the turns of conversations whose calls are expected turn by turn.
	Turns []TurnMeans `json:"turns,omitempty"`
}

// TurnMeans holds the means of one turn of conversations, at the level published.
type TurnMeans struct {
	// Turn counts from 1.
	Turn int `json:"turn"`
	// Samples is the number of conversations with such a turn.
	Samples int `json:"samples"`
	// Accuracy is the share of turns whose called tools are the expected ones.
	Accuracy stats.Estimate `json:"accuracy"`
	// Types counts the answers of each type.
	Types map[eval.Type]int `json:"types"`
}

// Level holds the results at one level of extraction.
type Level struct {
	Level eval.Level `json:"level"`
	// Micro is the mean over all samples, Macro the mean over the means of the categories.
	Micro      Metrics           `json:"micro"`
	Macro      Metrics           `json:"macro"`
	Types      map[eval.Type]int `json:"types"`
	Categories []Category        `json:"categories"`
}

// Category holds the results of one category.
type Category struct {
	Name    string            `json:"name"`
	Samples int               `json:"samples"`
	Metrics Metrics           `json:"metrics"`
	Types   map[eval.Type]int `json:"types"`
}

// Metrics are means over samples with their intervals.
type Metrics struct {
	Precision stats.Estimate `json:"precision"`
	Recall    stats.Estimate `json:"recall"`
	F1        stats.Estimate `json:"f1"`
	Accuracy  stats.Estimate `json:"accuracy"`
}

// List returns the metrics in the order of [MetricNames].
func (m *Metrics) List() []stats.Estimate {
	return []stats.Estimate{m.Precision, m.Recall, m.F1, m.Accuracy}
}

// MetricNames returns the names of the metrics.
func MetricNames() []string { return []string{"precision", "recall", "f1", "accuracy"} }

func metricsOf(e []stats.Estimate) Metrics { return Metrics{e[0], e[1], e[2], e[3]} }

// Reward is the mean of a reward: the total, or one of its terms.
type Reward struct {
	Name string         `json:"name"`
	Mean stats.Estimate `json:"mean"`
}

// Checked is the verdict of a checker on all answers.
type Checked struct {
	Valid      stats.Estimate     `json:"valid"`
	Categories map[string]float64 `json:"categories"`
	Errors     map[string]int     `json:"errors"`
}

// Executed summarizes executions. Each share is the mean over the answers that have it.
type Executed struct {
	// Answers is the number of executed answers, and Masked the number of those without a usable
	// result.
	Answers int `json:"answers"`
	Masked  int `json:"masked"`
	// Calls is the number of calls in the answers, Refused the number not run because the sample
	// does not offer the tool, OK the number without an error, and Denied the number that were not
	// allowed.
	Calls   int `json:"calls"`
	Refused int `json:"refused"`
	OK      int `json:"ok"`
	Denied  int `json:"denied"`
	// Run is the share of calls without an error, Results that of the labelled results, and State
	// that of answers with the state of the labelled calls.
	Run     *stats.Estimate `json:"run,omitempty"`
	Results *stats.Estimate `json:"results,omitempty"`
	State   *stats.Estimate `json:"state,omitempty"`
	// Why counts the masked answers by their reason.
	Why map[string]int `json:"masked_because,omitempty"`
}

// Shares returns the existing shares with their names.
func (e *Executed) Shares() (all []Reward) {
	for _, share := range []struct {
		name string
		mean *stats.Estimate
	}{{"calls without an error", e.Run}, {"labelled results", e.Results}, {"state of the labelled calls", e.State}} {
		if share.mean != nil {
			all = append(all, Reward{share.name, *share.mean})
		}
	}
	return all
}

// Pass is the accuracy over several trials.
type Pass struct {
	K int `json:"k"`
	// AtLeastOne is pass@k, All is pass^k.
	AtLeastOne stats.Estimate `json:"pass_at_k"`
	All        stats.Estimate `json:"pass_all_k"`
}

// About is the origin of scores.
type About struct {
	Version, Data string
	Skipped       []string
	Scoring       stage.Settings
}

// Inputs returns the digest of everything that determines a report of the scores.
func Inputs(scores []stage.Score, about About, settings Settings) (string, error) {
	head, err := json.Marshal(struct {
		Revision int
		About    About
		Settings Settings
	}{revision, about, settings.filled()})
	if err != nil {
		return "", fmt.Errorf("encoding the settings: %w", err)
	}
	parts := [][]byte{head}
	for i := range scores {
		parts = append(parts, []byte(scores[i].Inputs))
	}
	return eval.Digest(parts...), nil
}

// Make summarizes scores. The error is that of ctx, or means that there are no scores.
func Make(ctx context.Context, scores []stage.Score, about About, settings Settings) (*Report, error) {
	s := settings.filled()
	if len(scores) == 0 {
		return nil, fmt.Errorf("there are no scores")
	}
	inputs, err := Inputs(scores, about, s)
	if err != nil {
		return nil, err
	}
	m := &maker{ctx: ctx, settings: s, groups: group(scores)}
	m.categories()
	r := &Report{
		Inputs: inputs, Version: about.Version, Data: about.Data, Samples: len(m.groups), Answers: len(scores), Skipped: about.Skipped,
		Settings: s, Scoring: about.Scoring, Rules: Rules(),
	}
	var digests [][]byte
	for i := range m.groups {
		digests = append(digests, []byte(m.groups[i][0].Sample))
		r.Trials = max(r.Trials, len(m.groups[i]))
		for _, score := range m.groups[i] {
			if score.Unanswered {
				r.Unanswered++
			}
		}
	}
	r.SamplesDigest = eval.Digest(digests...)
	for _, level := range eval.Levels() {
		l, err := m.level(level)
		if err != nil {
			return nil, err
		}
		r.Levels = append(r.Levels, l)
	}
	if err := m.rest(r); err != nil {
		return nil, err
	}
	return r, nil
}

// At returns a level of a report.
func (r *Report) At(level eval.Level) *Level {
	for i := range r.Levels {
		if r.Levels[i].Level == level {
			return &r.Levels[i]
		}
	}
	return &r.Levels[0]
}

// Parse parses a report.json. name is the name of the file for errors.
func Parse(name string, text []byte) (*Report, error) {
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", name, err)
	}
	if len(r.Levels) == 0 || r.Scoring.Reward == nil {
		return nil, fmt.Errorf("%s is not a report of an evaluation", name)
	}
	return &r, nil
}

// group groups the trials of each sample, in the order of the samples.
func group(scores []stage.Score) (groups [][]*stage.Score) {
	at := make(map[string]int, len(scores))
	for i := range scores {
		g, ok := at[scores[i].ID]
		if !ok {
			g = len(groups)
			at[scores[i].ID] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], &scores[i])
	}
	return groups
}

type maker struct {
	ctx      context.Context
	settings Settings
	groups   [][]*stage.Score
	names    []string // categories
	strata   []int    // the category of each group
}

// categoryOf returns the name of the category of a score in reports.
func categoryOf(s *stage.Score) string { return cmp.Or(s.Category, "all") }

func (m *maker) categories() {
	for _, g := range m.groups {
		if name := categoryOf(g[0]); !slices.Contains(m.names, name) {
			m.names = append(m.names, name)
		}
	}
	slices.Sort(m.names)
	m.strata = make([]int, len(m.groups))
	for i, g := range m.groups {
		m.strata[i], _ = slices.BinarySearch(m.names, categoryOf(g[0]))
	}
}

// options returns the options of a bootstrap. Each number gives different draws.
func (m *maker) options(number int) stats.Options {
	return stats.Options{Iterations: m.settings.Iterations, Seed: m.settings.Seed + uint64(number)*0x9e3779b97f4a7c15, Confidence: m.settings.Confidence}
}

// columns returns the means over the trials of each sample that keep selects.
func (m *maker) columns(n int, keep func(i int) bool, values func(s *stage.Score) []float64) [][]float64 {
	columns := make([][]float64, n)
	for i, g := range m.groups {
		if !keep(i) {
			continue
		}
		sums := make([]float64, n)
		for _, score := range g {
			for k, v := range values(score) {
				sums[k] += v
			}
		}
		for k := range columns {
			columns[k] = append(columns[k], sums[k]/float64(len(g)))
		}
	}
	return columns
}

func all(int) bool { return true }

func selection(level eval.Level) func(s *stage.Score) []float64 {
	return func(s *stage.Score) []float64 {
		at := s.At(level)
		return []float64{at.Precision, at.Recall, at.F1, at.Accuracy}
	}
}

// bootstrap returns the bootstrap of all samples, within categories if that is set.
func (m *maker) bootstrap(columns [][]float64) ([]stats.Estimate, error) {
	o := m.options(0)
	if m.settings.Stratify && len(columns) > 0 && len(columns[0]) == len(m.strata) {
		o.Strata = m.strata
	}
	return stats.Bootstrap(m.ctx, columns, o)
}

// estimate is bootstrap for one column.
func (m *maker) estimate(column []float64) (stats.Estimate, error) {
	all, err := m.bootstrap([][]float64{column})
	if err != nil {
		return stats.Estimate{}, err
	}
	return all[0], nil
}

func (m *maker) level(level eval.Level) (Level, error) {
	out := Level{Level: level, Types: m.types(level, all)}
	micro, err := m.bootstrap(m.columns(4, all, selection(level)))
	if err != nil {
		return out, err
	}
	out.Micro = metricsOf(micro)
	macro, sums := make([]stats.Estimate, 4), make([][]float64, 4)
	for c, name := range m.names {
		within := func(i int) bool { return m.strata[i] == c }
		columns, o := m.columns(4, within, selection(level)), m.options(c+1)
		estimates, err := stats.Bootstrap(m.ctx, columns, o)
		if err != nil {
			return out, err
		}
		replicates, err := stats.Replicates(m.ctx, columns, o)
		if err != nil {
			return out, err
		}
		for k := range macro {
			macro[k].Mean += estimates[k].Mean / float64(len(m.names))
			if sums[k] == nil {
				sums[k] = make([]float64, len(replicates[k]))
			}
			for i, v := range replicates[k] {
				sums[k][i] += float64(v / float64(len(m.names)))
			}
		}
		out.Categories = append(out.Categories, Category{Name: name, Samples: len(columns[0]), Metrics: metricsOf(estimates), Types: m.types(level, within)})
	}
	for k := range macro {
		macro[k].Low, macro[k].High = stats.Interval(sums[k], m.settings.Confidence)
	}
	out.Macro = metricsOf(macro)
	return out, nil
}

// types counts the answers of each type.
func (m *maker) types(level eval.Level, keep func(i int) bool) map[eval.Type]int {
	counts := map[eval.Type]int{}
	for _, t := range eval.Types() {
		counts[t] = 0
	}
	for i, g := range m.groups {
		if keep(i) {
			for _, score := range g {
				counts[score.At(level).Type]++
			}
		}
	}
	return counts
}
