package setup

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestOnlyUnmodifiedPagesOfTheProgramAreDropped(t *testing.T) {
	const clean = "Rss: 8 kB\nPrivate_Dirty: 8 kB\nAnonymous: 0 kB\nVmFlags: rd mr\n"
	smaps := "00400000-00500000 r-xp 00000000 fe:00 1 /bin/callyard\n" + clean +
		"00500000-00600000 r--p 00100000 fe:00 1 /bin/callyard\n" + clean +
		"00600000-00700000 rw-p 00200000 fe:00 1 /bin/callyard\n" + clean +
		"00700000-00800000 r--p 00300000 fe:00 1 /bin/callyard\n" + strings.Replace(clean, "Anonymous: 0", "Anonymous: 4", 1) +
		"00900000-00a00000 r-xp 00000000 fe:00 2 /lib/other.so\n" + clean +
		"00a00000-00b00000 r--p 00000000 00:00 0\n" + clean +
		"zz-00c00000 r--p 00000000 fe:00 1 /bin/callyard\n" + clean
	want := []pages{{0x400000, 0x500000}, {0x500000, 0x600000}}
	if got := unwritten(strings.NewReader(smaps), "/bin/callyard"); !slices.Equal(got, want) {
		t.Errorf("%x are dropped, want %x", got, want)
	}
}

// The program continues after its own pages were dropped.
func TestProgramRunsAfterItsPagesAreDropped(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip("the mappings of this process cannot be read")
	}
	defer f.Close()
	if len(unwritten(f, self)) == 0 {
		t.Error("no page of this program can be dropped")
	}
	for range 3 {
		dropProgram()
		if use := readHeap(); use.allocated == 0 {
			t.Error("the heap cannot be read any more")
		}
	}
}
