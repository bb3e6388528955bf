package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is what a campaign found. Durations in its JSON are nanoseconds.
type Report struct {
	Name    string        `json:"name"`
	Seed    uint64        `json:"seed"`
	Date    time.Time     `json:"date"`
	Took    time.Duration `json:"took"`
	Doors   int           `json:"front_doors"`
	Workers int           `json:"workers"`
	Clients int           `json:"clients"`
	// Wanted says that findings are what the campaign is for: something was switched
	// off that keeps the promises.
	Wanted bool `json:"wanted"`

	Calls int `json:"calls"`
	// Accepted is the number with an id that a client knows, Ended the number
	// with an outcome that a client knows.
	Accepted int            `json:"accepted"`
	Ended    int            `json:"ended"`
	States   map[string]int `json:"states"`
	// Duplicates is how many runs were one too many, of calls that may run once; Lost
	// how many calls were accepted and are not stored or have no result.
	Duplicates int `json:"duplicates"`
	Lost       int `json:"lost"`
	// UnknownMost is how many calls were under way when faults struck.
	UnknownMost int `json:"unknown_most"`
	// Stored is the number of stored calls, and Twins the number of these that
	// were repeated elsewhere and canceled.
	Stored int `json:"stored"`
	Twins  int `json:"twins"`
	// Peak is the most calls that were under way at once.
	Peak   int       `json:"peak_in_flight"`
	Cancel *Canceled `json:"cancel,omitempty"`
	// CancelAsked is how many single calls their clients canceled; of these
	// CancelNeverRan ended as canceled and CancelUnknown as unknown.
	CancelAsked    int `json:"cancel_asked,omitempty"`
	CancelNeverRan int `json:"cancel_never_ran,omitempty"`
	CancelUnknown  int `json:"cancel_unknown,omitempty"`
	// Disturbed is how many calls of bad servers were answered.
	Disturbed int `json:"disturbed,omitempty"`
	// Odd are answers that no client should get, and how often they came.
	Odd    map[string]int `json:"odd_answers,omitempty"`
	Scars  []*scar        `json:"faults"`
	Points []point        `json:"timeline"`
	// Findings are what does not fit; none is what is promised.
	Findings []string `json:"findings"`
	// Kept is the folder with the logs, when there is something to look for.
	Kept string `json:"-"`
}

// Canceled is what became of the batch that was canceled.
type Canceled struct {
	Lines int `json:"lines"`
	// RanWithinASecond is how many had run a second after the cancel was answered,
	// Ran how many did in all.
	RanWithinASecond int           `json:"ran_within_a_second"`
	Ran              int           `json:"ran"`
	Took             time.Duration `json:"took"`

	ended int
}

// Passed says that the campaign showed what it should.
func (r *Report) Passed() bool { return r.Wanted == (len(r.Findings) > 0) }

// Table writes the report for people.
func (r *Report) Table(out io.Writer) {
	fmt.Fprintf(out, "\n%s: seed %d, %d front doors, %d workers, %d clients, %s\n", r.Name, r.Seed, r.Doors, r.Workers, r.Clients, r.Took.Round(time.Second))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "calls\taccepted\tended\tsucceeded\tunknown\tat most\tother\tlost\tran twice\ttwins\tpeak\t\n")
	other := 0
	for state, n := range r.States {
		if state != "succeeded" && state != "unknown" {
			other += n
		}
	}
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n",
		r.Calls, r.Accepted, r.Ended, r.States["succeeded"], r.States["unknown"], r.UnknownMost, other, r.Lost, r.Duplicates, r.Twins, r.Peak)
	fmt.Fprintf(w, "\t\t\t\t\t\t\t\t\t\t\t\n")
	fmt.Fprintf(w, "fault\tcount\tin flight\tback p50\tmost\tserving p50\tmost\tsettled p50\tmost\t\t\t\n")
	for _, kind := range r.kinds() {
		var inFlight int
		var back, serving, settled []time.Duration
		for _, s := range r.Scars {
			if s.Kind == kind {
				inFlight += s.InFlight
				back, serving, settled = add(back, s.Back), add(serving, s.Serving), add(settled, s.Settled)
			}
		}
		n := r.count(kind)
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%s\t%s\t%s\t\t\t\n", kind, n, float64(inFlight)/float64(n), spread(back), spread(serving), spread(settled))
	}
	_ = w.Flush() // out keeps its error
	if r.CancelAsked > 0 {
		fmt.Fprintf(out, "canceled calls: %d; %d never ran, of %d nobody knows, the others ended before\n", r.CancelAsked, r.CancelNeverRan, r.CancelUnknown)
	}
	if c := r.Cancel; c != nil {
		fmt.Fprintf(out, "canceled batch: %d lines; %d had run a second after the cancel, %d in all\n", c.Lines, c.RanWithinASecond, c.Ran)
	}
	for _, what := range slices.Sorted(maps.Keys(r.Odd)) {
		fmt.Fprintf(out, "odd answer, %d times: %s\n", r.Odd[what], what)
	}
	const shown = 20
	for i, f := range r.Findings {
		if i == shown {
			fmt.Fprintf(out, "… and %d more findings\n", len(r.Findings)-shown)
			break
		}
		fmt.Fprintf(out, "finding: %s\n", f)
	}
	switch {
	case r.Wanted && r.Passed():
		fmt.Fprintf(out, "%s: the harness sees it when a guard is off\n", r.Name)
	case r.Wanted:
		fmt.Fprintf(out, "%s: FAILED: a guard was off, and nothing was found\n", r.Name)
	case r.Passed():
		fmt.Fprintf(out, "%s: every promise was kept\n", r.Name)
	default:
		fmt.Fprintf(out, "%s: FAILED: %d findings; the logs are in %s\n", r.Name, len(r.Findings), r.Kept)
	}
}

func (r *Report) kinds() []Kind {
	var kinds []Kind
	for _, s := range r.Scars {
		if !slices.Contains(kinds, s.Kind) {
			kinds = append(kinds, s.Kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

func (r *Report) count(kind Kind) (n int) {
	for _, s := range r.Scars {
		if s.Kind == kind {
			n++
		}
	}
	return n
}

// add leaves out what never came.
func add(to []time.Duration, d time.Duration) []time.Duration {
	if d > 0 {
		to = append(to, d)
	}
	return to
}

// spread is the median and the most, in seconds.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "-\t-"
	}
	slices.Sort(all)
	return fmt.Sprintf("%.2f s\t%.2f s", all[len(all)/2].Seconds(), all[len(all)-1].Seconds())
}

// fileName is the name of a campaign as that of a file.
func fileName(name string) string {
	return strings.Trim(strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' {
			return c
		}
		if c == ' ' || c == ',' {
			return '-'
		}
		return -1
	}, name), "-")
}

// Write writes the report as JSON and its timeline as a picture into dir.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("making the folder of reports: %w", err)
	}
	name := filepath.Join(dir, fileName(r.Name))
	text, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = os.WriteFile(name+".json", append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	picture, err := os.Create(name + ".png")
	if err != nil {
		return fmt.Errorf("writing the timeline: %w", err)
	}
	err = r.WritePNG(picture)
	if closeErr := picture.Close(); err == nil {
		err = closeErr
	}
	return err
}
