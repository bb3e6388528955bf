package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is one line of "go test -json"; see "go doc test2json". Build output
// carries ImportPath in place of Package.
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

// summary counts tests and subtests and keeps the output of those that have not
// passed yet. It is not safe for concurrent use.
type summary struct {
	out      io.Writer
	strict   bool // a skipped test is a failure
	open     map[string]*pkg
	builds   map[string]*strings.Builder // compiler output by import path
	skips    []string
	reasons  []string // of what failed, in short
	passed   int
	failed   int
	skipped  int
	noTests  int
	packages int
}

// pkg is one package that has not ended.
type pkg struct {
	output map[string]*strings.Builder // by test; "" is the package itself
	failed int
}

func newSummary(out io.Writer, strict bool) *summary {
	return &summary{out: out, strict: strict, open: map[string]*pkg{}, builds: map[string]*strings.Builder{}}
}

// read takes events until r ends. A line that is not an event is printed as it
// is.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			s.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *summary) line(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		_, _ = s.out.Write(line)
		return
	}
	switch e.Action {
	case "build-output":
		keep(s.builds, e.ImportPath, e.Output)
		return
	case "build-fail":
		return // told with the package that could not be built
	}
	p := s.open[e.Package]
	if p == nil {
		p = &pkg{output: map[string]*strings.Builder{}}
		s.open[e.Package] = p
	}
	switch {
	case e.Action == "output":
		keep(p.output, e.Test, e.Output)
	case e.Test == "":
		s.endPackage(e, p)
	default:
		s.endTest(e, p)
	}
}

func keep(to map[string]*strings.Builder, key, text string) {
	b := to[key]
	if b == nil {
		b = &strings.Builder{}
		to[key] = b
	}
	b.WriteString(text)
}

func (s *summary) endTest(e event, p *pkg) {
	switch e.Action {
	case "pass":
		s.passed++
		delete(p.output, e.Test)
	case "skip":
		s.skipped++
		s.skips = append(s.skips, fmt.Sprintf("SKIP %s %s\n%s", e.Package, e.Test, textOf(p.output, e.Test)))
		delete(p.output, e.Test)
	case "fail":
		s.failed++
		p.failed++
		text := textOf(p.output, e.Test)
		s.printf("FAIL %s %s (%.2fs)\n%s\n", e.Package, e.Test, e.Elapsed, text)
		if why := reasons(text); why != "" {
			s.reasons = append(s.reasons, fmt.Sprintf("FAIL %s %s\n%s", e.Package, e.Test, why))
		}
		delete(p.output, e.Test)
	}
}

// said is how a line begins that a test says itself; those after it that belong to it
// are indented further.
var said = regexp.MustCompile(`^ +[\w.-]+\.go:\d+: `)

// reasons are the lines in which a test that failed speaks, each with the first of
// those that belong to it: the logs of its processes are long, and who reads the end
// of a run wants to know why.
func reasons(text string) string {
	const more = 4 // lines of one saying
	var b strings.Builder
	left := 0
	for line := range strings.Lines(text) {
		switch {
		case said.MatchString(line):
			left = more
		case left == 0 || !strings.HasPrefix(line, "        "):
			left = 0
			continue
		}
		left--
		b.WriteString(line)
	}
	return b.String()
}

func (s *summary) endPackage(e event, p *pkg) {
	switch e.Action {
	case "pass":
		s.packages++
		cached := ""
		if strings.Contains(textOf(p.output, ""), "\t(cached)") {
			cached = ", cached"
		}
		s.printf("ok   %s (%.2fs%s)\n", e.Package, e.Elapsed, cached)
	case "skip":
		s.noTests++ // a package without test files
	case "fail":
		s.packages++
		s.failPackage(e, p)
	default:
		return // "start": the package goes on
	}
	delete(s.open, e.Package)
}

// failPackage tells why the package failed. Where no test is to blame (the build
// failed, a panic or the time-out ended the process, TestMain said no) the
// package counts as one failure.
func (s *summary) failPackage(e event, p *pkg) {
	s.printf("FAIL %s (%.2fs)\n", e.Package, e.Elapsed)
	if e.FailedBuild != "" {
		s.printf("%s", textOf(s.builds, e.FailedBuild))
	}
	if p.failed == 0 {
		s.failed++
	}
	// What is left belongs to tests that never ended, and to the package.
	for _, test := range slices.Sorted(maps.Keys(p.output)) {
		if test != "" {
			s.printf("     %s did not end:\n", test)
		}
		s.printf("%s", textOf(p.output, test))
	}
	s.printf("\n")
}

// finish prints what is left to say and reports whether the run is good.
func (s *summary) finish() bool {
	for _, name := range slices.Sorted(maps.Keys(s.open)) {
		s.failed++
		s.printf("FAIL %s never ended\n", cmp.Or(name, "(no package)"))
		for _, test := range slices.Sorted(maps.Keys(s.open[name].output)) {
			s.printf("%s", textOf(s.open[name].output, test))
		}
	}
	for _, skip := range s.skips {
		s.printf("%s", skip)
	}
	for _, reason := range s.reasons {
		s.printf("%s", reason)
	}
	good := s.failed == 0 && s.passed > 0
	if s.passed+s.failed+s.skipped == 0 {
		s.printf("no test ran\n")
	}
	if s.skipped > 0 && s.strict {
		s.printf("skipped tests fail this run, because CI=true\n")
		good = false
	}
	s.printf("%d packages, %d without tests\n", s.packages, s.noTests)
	s.printf("%d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
	return good
}

func (s *summary) printf(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }

func textOf(from map[string]*strings.Builder, key string) string {
	if b := from[key]; b != nil {
		return b.String()
	}
	return ""
}
