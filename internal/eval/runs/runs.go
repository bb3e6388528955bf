// Package runs shows the evaluation runs in a folder. Each run is a subfolder that callyard eval score
// wrote.
//
// The package reads nothing outside of the folder, regardless of the requested name and of symbolic
// links. It writes nothing, and limits the size of what it reads.
//
// It does not score, and does not decide who may see the runs.
package runs

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/report"
	"github.com/callyard/callyard/internal/eval/stage"
	"github.com/callyard/callyard/internal/eval/stats"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// maxRuns is the maximum number of listed runs; the newest are listed.
	maxRuns = 500
	// maxReport and maxScores limit the bytes read of one run.
	maxReport = 16 << 20
	maxScores = 256 << 20
)

// Folder is a folder of runs. It is safe for concurrent use.
type Folder struct {
	dir string

	mu    sync.Mutex
	known map[string]entry // by name of the run; valid as long as its report is the same file
}

type entry struct {
	at   time.Time
	size int64
	run  Run
}

// New returns the runs of a folder. The folder is read only on requests.
func New(dir string) *Folder { return &Folder{dir: dir, known: make(map[string]entry)} }

// Run is an entry of a list of runs.
type Run struct {
	Name string
	At   time.Time // time at which the report was written, or if there is none, the folder was changed
	// Scored reports whether there is a report. If not, Fault is the reason.
	Scored bool
	Fault  string
	// Data is the name of the data set as given.
	Data                     string
	Samples, Answers, Trials int
	// F1 and Accuracy are fractions of the samples, by the published rules of extraction. Reward is
	// the mean of the total reward.
	F1, Accuracy, Reward stats.Estimate
}

// List returns the runs, newest first, and the total number of runs, which may be higher. A folder
// without files of an evaluation is not a run. It returns KindUnavailable on an error.
func (s *Folder) List() (runs []Run, all int, err error) {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, 0, schema.Errorf(schema.KindUnavailable, "The folder of evaluations cannot be read; check front_door.evaluations: %w", err)
	}
	defer func() { _ = root.Close() }()
	folders, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, 0, schema.Errorf(schema.KindUnavailable, "The folder of evaluations cannot be read; check front_door.evaluations: %w", err)
	}
	type found struct {
		name     string
		info     fs.FileInfo // of the report, or if there is none, of another file of the run
		isReport bool
	}
	var candidates []found
	for _, f := range folders {
		if !valid(f.Name()) {
			continue
		}
		for _, file := range []string{stage.ReportFile, stage.ScoresFile, stage.ResponsesFile, stage.SamplesFile} {
			if info, err := root.Stat(f.Name() + "/" + file); err == nil && info.Mode().IsRegular() {
				candidates = append(candidates, found{f.Name(), info, file == stage.ReportFile})
				break
			}
		}
	}
	slices.SortFunc(candidates, func(a, b found) int {
		return cmp.Or(b.info.ModTime().Compare(a.info.ModTime()), cmp.Compare(a.name, b.name))
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make(map[string]entry)
	for _, c := range candidates[:min(len(candidates), maxRuns)] {
		e, ok := s.known[c.name]
		// A report that could not be read is not scored here, so it is read again.
		if !ok || !e.at.Equal(c.info.ModTime()) || e.size != c.info.Size() || e.run.Scored != c.isReport {
			e = entry{c.info.ModTime(), c.info.Size(), read(root, c.name, c.info.ModTime(), c.isReport)}
		}
		seen[c.name] = e
		runs = append(runs, e.run)
	}
	s.known = seen
	return runs, len(candidates), nil
}

// read reads the list entry of a run.
func read(root *os.Root, name string, at time.Time, scored bool) Run {
	run := Run{Name: name, At: at}
	if !scored {
		run.Fault = "It is not scored: run callyard eval score."
		return run
	}
	r, err := reportOf(root, name)
	if err != nil {
		run.Fault = "The report cannot be read."
		return run
	}
	level := r.At(eval.Published)
	run.Scored, run.Data, run.Samples, run.Answers, run.Trials = true, r.Data, r.Samples, r.Answers, r.Trials
	run.F1, run.Accuracy = level.Micro.F1, level.Micro.Accuracy
	if len(r.Rewards) > 0 {
		run.Reward = r.Rewards[0].Mean
	}
	return run
}

// Report returns the report of a run. It returns KindNotFound if the run does not exist or is not
// scored.
func (s *Folder) Report(name string) (*report.Report, error) {
	root, r, err := s.open(name)
	if err != nil {
		return nil, err
	}
	return r, root.Close()
}

// open returns the folder and the report of a run.
func (s *Folder) open(name string) (*os.Root, *report.Report, error) {
	missing := schema.Errorf(schema.KindNotFound, "There is no scored run of that name.")
	if !valid(name) {
		return nil, nil, missing
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, nil, missing
	}
	r, err := reportOf(root, name)
	if err != nil {
		_ = root.Close()
		return nil, nil, missing
	}
	return root, r, nil
}

// Write writes the self-contained page of a run, as callyard eval report does. It returns KindNotFound
// if the run does not exist or is not scored. It stops reading the scores when the page has all samples
// that it shows.
func (s *Folder) Write(w io.Writer, name string) error {
	root, r, err := s.open(name)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	page := report.Page{Title: name, Report: r, Level: eval.Published}
	if page.Scores, err = wrong(root, name+"/"+stage.ScoresFile, page.Level); err != nil {
		return schema.Errorf(schema.KindUnavailable, "The scores of the run cannot be read; callyard eval report may say why: %w", err)
	}
	return page.Write(w)
}

// wrong reads the scores of incorrect answers, at most as many as a page shows.
func wrong(root *os.Root, path string, level eval.Level) (scores []stage.Score, err error) {
	f, err := plain(root, path, maxScores)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	lines := bufio.NewReader(f)
	for len(scores) <= report.MaxShown {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		more, fault := stage.ParseScores(stage.ScoresFile, line)
		if fault != nil {
			return nil, fault
		}
		for i := range more {
			if more[i].At(level).Type != eval.TypeCorrect {
				scores = append(scores, more[i])
			}
		}
		if err == io.EOF {
			break
		}
	}
	return scores, nil
}

func reportOf(root *os.Root, name string) (*report.Report, error) {
	text, err := contents(root, name+"/"+stage.ReportFile, maxReport)
	if err != nil {
		return nil, err
	}
	return report.Parse(stage.ReportFile, text)
}

// contents reads a regular file of at most the given size.
func contents(root *os.Root, path string, most int64) ([]byte, error) {
	f, err := plain(root, path, most)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	return text, errors.Join(err, f.Close())
}

// plain opens a regular file of at most the given size.
func plain(root *os.Root, path string, most int64) (*os.File, error) {
	info, err := root.Stat(path) // checked first, because opening a pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%s is no file, or has more than %d bytes", path, most)
	}
	return root.Open(path)
}

// valid reports whether a name can be that of a direct subfolder. Names with a leading dot are hidden.
func valid(name string) bool {
	return name != "" && name[0] != '.' && !strings.ContainsAny(name, "/\\\x00")
}
