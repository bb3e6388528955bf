// Package runs shows the runs of evaluations that lie in one folder, each in a folder of its own:
// what callyard eval score wrote there.
//
// It promises that it reads nothing outside of the folder, whatever name is asked for and whatever
// symbolic links there are, that it writes nothing, and that what it reads is bounded.
//
// It refuses to score, and to say who may see the runs.
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
	// maxRuns is how many runs are listed, the newest first.
	maxRuns = 500
	// maxReport and maxScores bound the bytes that are read of one run.
	maxReport = 16 << 20
	maxScores = 256 << 20
)

// Folder is a folder of runs. It is safe for concurrent use.
type Folder struct {
	dir string

	mu    sync.Mutex
	known map[string]entry // by the name of the run, while its report is the same file
}

type entry struct {
	at   time.Time
	size int64
	run  Run
}

// New returns the runs of a folder, which is looked at on each request alone.
func New(dir string) *Folder { return &Folder{dir: dir, known: make(map[string]entry)} }

// Dir is the folder.
func (s *Folder) Dir() string { return s.dir }

// Run is what a list tells of a run.
type Run struct {
	Name string
	At   time.Time // when its report was written; of a run without one, when its folder was changed
	// Scored says that there is a report. Without one Fault says why.
	Scored bool
	Fault  string
	// Data is the data set as it was named.
	Data                     string
	Samples, Answers, Trials int
	// F1 and Accuracy are shares of the samples, by the published rules of extraction. Reward is
	// the mean of the whole reward.
	F1, Accuracy, Reward stats.Estimate
}

// List returns the runs, the newest first, and the number of all, which may be higher. A folder
// without files of an evaluation is no run. The error is of KindUnavailable.
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
		name string
		info fs.FileInfo
		is   bool // the file is the report
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
		if !ok || !e.at.Equal(c.info.ModTime()) || e.size != c.info.Size() || e.run.Scored != c.is {
			e = entry{c.info.ModTime(), c.info.Size(), read(root, c.name, c.info.ModTime(), c.is)}
		}
		seen[c.name] = e
		runs = append(runs, e.run)
	}
	s.known = seen
	return runs, len(candidates), nil
}

// read reads what a list tells of a run.
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

// Report returns the report of a run. The error is of KindNotFound where there is no such run, or it
// is not scored.
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

// Write writes the page of a run, which is complete in itself: that of callyard eval report.
// The error is of KindNotFound where there is no such run, or it is not scored. The scores are
// read only until the page has all samples that it shows.
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

// wrong reads the scores of answers that are not correct, as far as a page shows them.
func wrong(root *os.Root, path string, level eval.Level) (scores []stage.Score, err error) {
	f, err := plain(root, path, maxScores)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is read only
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

// contents reads a file that is none but a plain one, and not longer than most.
func contents(root *os.Root, path string, most int64) ([]byte, error) {
	f, err := plain(root, path, most)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	return text, errors.Join(err, f.Close())
}

// plain opens a file that is none but a plain one, and not longer than most.
func plain(root *os.Root, path string, most int64) (*os.File, error) {
	info, err := root.Stat(path) // first: opening a pipe would wait for who writes to it
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%s is no file, or has more than %d bytes", path, most)
	}
	return root.Open(path)
}

// valid says whether a name can be that of a folder right below ours. Those with a dot at the
// beginning are hidden.
func valid(name string) bool {
	return name != "" && name[0] != '.' && !strings.ContainsAny(name, "/\\\x00")
}
