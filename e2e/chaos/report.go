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

// Report is the result of a campaign. Durations in its JSON are nanoseconds.
type Report struct {
	Name    string        `json:"name"`
	Seed    uint64        `json:"seed"`
	Date    time.Time     `json:"date"`
	Took    time.Duration `json:"took"`
	Doors   int           `json:"front_doors"`
	Workers int           `json:"workers"`
	Clients int           `json:"clients"`
	// Wanted reports that the campaign must have findings, because a guard was
	// switched off.
	Wanted bool `json:"wanted"`

	Calls int `json:"calls"`
	// Accepted is the number of calls whose ID a client knows, and Ended the number
	// whose outcome a client knows.
	Accepted int            `json:"accepted"`
	Ended    int            `json:"ended"`
	States   map[string]int `json:"states"`
	// Duplicates is the number of excess runs of calls that may run once. Lost is the
	// number of accepted calls that are not stored or have no result.
	Duplicates int `json:"duplicates"`
	Lost       int `json:"lost"`
	// UnknownMost is the number of calls that were in flight when faults struck.
	UnknownMost int `json:"unknown_most"`
	// Stored is the number of stored calls, and Twins the number of these that
	// were repeated at another front door and canceled.
	Stored int `json:"stored"`
	Twins  int `json:"twins"`
	// Peak is the maximum number of calls in flight.
	Peak   int       `json:"peak_in_flight"`
	Cancel *Canceled `json:"cancel,omitempty"`
	// CancelAsked is the number of single calls that clients canceled. CancelNeverRan
	// of them ended as canceled and CancelUnknown as unknown.
	CancelAsked    int `json:"cancel_asked,omitempty"`
	CancelNeverRan int `json:"cancel_never_ran,omitempty"`
	CancelUnknown  int `json:"cancel_unknown,omitempty"`
	// Disturbed is the number of answered calls of bad servers.
	Disturbed int `json:"disturbed,omitempty"`
	// Odd counts the answers that no client should get.
	Odd    map[string]int `json:"odd_answers,omitempty"`
	Scars  []*recovery    `json:"faults"`
	Points []point        `json:"timeline"`
	// Findings lists all mismatches. It is empty if all promises were kept.
	Findings []string `json:"findings"`
	// Kept is the folder with the logs, if there is something to investigate.
	Kept string `json:"-"`
}

// Canceled is the result of the canceled batch.
type Canceled struct {
	Lines int `json:"lines"`
	// RanWithinASecond is the number of calls that had run a second after the response to the
	// cancellation, and Ran the total number.
	RanWithinASecond int           `json:"ran_within_a_second"`
	Ran              int           `json:"ran"`
	Took             time.Duration `json:"took"`

	ended int
}

// Passed reports whether the campaign had the expected outcome.
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

// add appends d unless it is 0, which means never.
func add(to []time.Duration, d time.Duration) []time.Duration {
	if d > 0 {
		to = append(to, d)
	}
	return to
}

// spread returns the median and the maximum, in seconds.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "-\t-"
	}
	slices.Sort(all)
	return fmt.Sprintf("%.2f s\t%.2f s", all[len(all)/2].Seconds(), all[len(all)-1].Seconds())
}

// fileName converts the name of a campaign to a file name.
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

// Write writes the report as JSON and its timeline as PNG into dir.
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
