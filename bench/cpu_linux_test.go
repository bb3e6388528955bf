package bench

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStatLineIsParsedWithAnyCommandName(t *testing.T) {
	const rest = " S 77 1 1 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 7 0 100 0 0"
	for _, command := range []string{"node", "a b", "tmux: (x) 1 2", ") R 1 (", ""} {
		got, err := parseStat([]byte("123 (" + command + ")" + rest))
		if err != nil || got.parent != 77 || got.used != 3*time.Second {
			t.Errorf("%q: %+v, %v", command, got, err)
		}
	}
	for _, line := range []string{"", "12", "12 (x)", "12 (x) S 1 2 3", "12 (x) S a 1 1 0 -1 4194560 100 0 0 0 250 50 0 0"} {
		if got, err := parseStat([]byte(line)); err == nil {
			t.Errorf("%q was read as %+v", line, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("123 (a b) S 77 1 1 0 -1 4194560 100 0 0 0 250 50 0 0 20"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if s, err := parseStat(line); err != nil && s != (stat{}) {
			t.Errorf("an error and %+v", s)
		}
	})
}

func TestDescendantsAreFoundAtAnyDepthAndWithCycles(t *testing.T) {
	parents := map[int]int{10: 1, 11: 10, 12: 11, 13: 12, 20: 1, 21: 20, 30: 31, 31: 30, 40: 12}
	if d := cmp.Diff([]int{12, 13, 21, 40}, below(parents, []int{11, 20})); d != "" {
		t.Error(d)
	}
}

// TestCPUTimeOfChildIsCountedForTheServer has a shell count in a child process, and expects that time
// under the tool server.
func TestCPUTimeOfChildIsCountedForTheServer(t *testing.T) {
	// The outer shell waits for a line; the inner one does the work.
	cmd := exec.Command("sh", "-c", `sh -c 'echo ready; read go; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; read end'; exit 0`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		_ = cmd.Wait()
	}()
	line := func() {
		buf := make([]byte, 16)
		if n, err := out.Read(buf); n == 0 {
			t.Fatal(err)
		}
	}
	line()
	m := meter{roots: map[string]int{"callyard": cmd.Process.Pid}}
	m.find()
	before := m.read()
	if _, err := in.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	line()
	used := m.between(before, m.read())
	if used[toolServer] < 20*time.Millisecond {
		t.Errorf("the work of the child was not seen: %v", used)
	}
	if used["callyard"] > 10*time.Millisecond || used[generator] > used[toolServer] {
		t.Errorf("the work of the child counts for others: %v", used)
	}
	if _, ok := used[generator]; !ok {
		t.Errorf("the generator is missing: %v", used)
	}
}

func TestTheProcessClockAgreesWithItsTicks(t *testing.T) {
	var x uint64
	for began := time.Now(); time.Since(began) < 100*time.Millisecond; {
		x += uint64(time.Now().UnixNano())
	}
	clock, ok := processCPU(os.Getpid())
	s, err := readStat("self")
	own, ok2 := ownCPU()
	if !ok || !ok2 || err != nil {
		t.Fatal(ok, ok2, err, x)
	}
	if d := (clock - s.used).Abs(); d > 200*time.Millisecond {
		t.Errorf("the clock says %s, the ticks %s", clock, s.used)
	}
	if d := (clock - own).Abs(); d > 200*time.Millisecond {
		t.Errorf("the clock says %s, getrusage %s", clock, own)
	}
	if _, ok := processCPU(1 << 22); ok {
		t.Error("a process that cannot be has a clock")
	}
}
