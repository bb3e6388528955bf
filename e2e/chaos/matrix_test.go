package chaos

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func TestEveryMatrixCellHasACampaignOrExistingTests(t *testing.T) {
	root, err := FindRoot()
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for _, c := range Cells() {
		if (c.Campaign == nil) == (len(c.Tests) == 0) {
			t.Errorf("%s is to be shown by either a campaign or tests", c.Name())
		}
		if c.Expect == "" {
			t.Errorf("nothing is expected of %s", c.Name())
		}
		for _, test := range c.Tests {
			if sources[test.Package] == "" {
				files, err := filepath.Glob(filepath.Join(root, test.Package, "*_test.go"))
				if err != nil {
					t.Fatal(err)
				}
				for _, file := range files {
					text, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					sources[test.Package] += string(text)
				}
			}
			top, _, _ := strings.Cut(test.Name, "/")
			if !regexp.MustCompile(`(?m)^func ` + top + `\(`).MatchString(sources[test.Package]) {
				t.Errorf("%s is shown by %s, which is not in %s", c.Name(), top, test.Package)
			}
		}
	}
}

func TestEveryCellHasAUniqueName(t *testing.T) {
	files, names := map[string]bool{}, map[string]bool{}
	for _, c := range Cells() {
		if names[c.Name()] || c.Campaign != nil && files[fileName(c.Name())] {
			t.Errorf("there are two cells %q", c.Name())
		}
		names[c.Name()], files[fileName(c.Name())] = true, true
	}
	if some, err := Some(Cells(), "kill -9, worker; clock"); err != nil || len(some) != 5 || some[0].Name() != "kill -9, worker" {
		t.Errorf("by names there are %d cells, %v", len(some), err)
	}
	if _, err := Some(Cells(), "flood of frogs"); err == nil {
		t.Error("there is a cell for everything")
	}
}

func TestGoTestEventsAreParsedAndMissingTestsFail(t *testing.T) {
	events := `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":1.5}
{"Action":"output","Package":"p","Test":"TestB/worker","Output":"it broke\n"}
{"Action":"fail","Package":"p","Test":"TestB/worker","Elapsed":0}
{"Action":"skip","Package":"p","Test":"TestC","Elapsed":0}
{"Action":"fail","Package":"p","Elapsed":2}
`
	ends := map[Test]testEnd{}
	var shown bytes.Buffer
	if err := readTests(strings.NewReader(events), "./p", ends, &shown); err != nil {
		t.Fatal(err)
	}
	if got := shown.String(); got != "it broke\n" {
		t.Errorf("of what failed %q is shown", got)
	}
	for _, c := range []struct {
		tests  []string
		passed bool
		saw    string
		took   time.Duration
	}{
		{[]string{"TestA"}, true, "the test passed", 1500 * time.Millisecond},
		{[]string{"TestA", "TestB/worker"}, false, "failed: TestB/worker", 1500 * time.Millisecond},
		{[]string{"TestC"}, false, "failed: TestC", 0},
		{[]string{"TestD"}, false, "failed: TestD", 0},
	} {
		o := Outcome{}
		for _, name := range c.tests {
			o.Cell.Tests = append(o.Cell.Tests, Test{"./p", name})
		}
		o.judge(ends)
		if o.Passed != c.passed || o.Saw != c.saw || o.Took != c.took {
			t.Errorf("%v: passed %t after %s, saw %q", c.tests, o.Passed, o.Took, o.Saw)
		}
	}
	if err := readTests(strings.NewReader("not JSON\n"), "./p", ends, &shown); err == nil {
		t.Error("what are no events is read")
	}
}

func TestTheMatrixIsAPageOfMarkdown(t *testing.T) {
	report := &Report{
		Calls: 100, States: map[string]int{"succeeded": 98, "unknown": 2}, UnknownMost: 40,
		Scars: []*recovery{{Kind: PartitionWorker, Back: 20 * time.Second, Serving: 100 * time.Millisecond, Settled: 21 * time.Second}},
	}
	broken := *report
	broken.Findings = []string{"e1 ran 2 times", "e2 ran 2 times"}
	broken.Duplicates = 2
	var page bytes.Buffer
	err := WritePage(&page, []Outcome{
		{Cell: Cell{Fault: "partitioned", Where: atWorker, Expect: "others take its calls", Campaign: &Campaign{}}, Passed: true, Saw: report.Short()},
		{Cell: Cell{Fault: "partitioned", Where: atDoor, Expect: "others continue", Campaign: &Campaign{}}, Saw: broken.Short()},
		{Cell: Cell{Fault: "kill -9", Where: atRedis, Expect: "tokens | are there", Tests: []Test{{"./e2e", "TestX/Redis_that_forgets"}, {"./e2e", "TestY"}}}, Passed: true, Saw: "2 tests passed"},
		{Cell: Cell{Fault: "power cut", Where: atNATS, Expect: "nothing lost", Campaign: &Campaign{}}, LeftOut: "it needs Linux"},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "matrix.md")
	if *update {
		if err := os.WriteFile(golden, page.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), page.String()); diff != "" {
		t.Errorf("(-golden +written)\n%s", diff)
	}
}

func TestGoTimePackageCanBePatched(t *testing.T) {
	root, err := FindRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := clockOverlay(t.Context(), root, dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("sec += chaosAhead()")) {
		t.Error("Now does not look at the clock of the harness")
	}
	if _, err := wrongClock("func Now() Time { return clock() }"); err == nil {
		t.Error("a package time that we do not know is changed")
	}
}

func TestNetworkAndClockFaultsArePlanned(t *testing.T) {
	mix := []Share{{PartitionWorker, 30}, {PartitionDoor, 10}, {PartitionNode, 10}, {SplitNodes, 10}, {SlowLAN, 5}, {JumpNATS, 20}, {FillDisk, 3}, {StopServer, 5}, {KillNode, 5}, {StopNode, 5}}
	ahead := map[time.Duration]int{}
	for _, f := range Plan(3, mix, 2, 4) {
		most := map[Kind]int{PartitionWorker: 4, StopServer: 4, PartitionDoor: 2, PartitionNode: 3, SplitNodes: 3, KillNode: 3, StopNode: 3}[f.Kind]
		if f.Victim < 0 || f.Victim >= max(most, 1) {
			t.Errorf("%v: there is no such victim", f)
		}
		if f.Kind == JumpNATS {
			ahead[f.Ahead]++
		}
		if f.Kind.lasts() && f.Kind != KillNode && f.Down < 2*time.Second {
			t.Errorf("%v lasts %s", f, f.Down)
		}
	}
	if ahead[time.Hour] == 0 || ahead[-time.Hour] == 0 || len(ahead) != 2 {
		t.Errorf("clocks jump by %v", ahead)
	}
	c := Campaign{Mix: []Share{{PartitionDoor, 3}}, Doors: 2, Down: time.Minute}
	for _, f := range c.plan() {
		if f.Down != time.Minute {
			t.Errorf("%v lasts %s", f, f.Down)
		}
	}
}
