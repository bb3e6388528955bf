package format

import (
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func TestNamesAreFoundInOtherLetterCaseAndWithOtherSeparators(t *testing.T) {
	var f Folding[string]
	f.Add("files__read_file", "read")
	f.Add("files__read_file", "read")
	f.Add("demo__get-sum", "sum")
	f.Add("other__get_sum", "other sum")
	f.Add("get-sum", "sum")
	f.Add("get_sum", "other sum")
	for name, want := range map[string][]string{
		"Files.Read-File": {"read"}, "FILES READ FILE": {"read"}, "functions.files_read_file": {"read"}, "mcp__Files__read.file": {"read"}, "Functions::files-read-file": {"read"},
		"Demo.get_sum": {"sum"}, "Get Sum": {"sum", "other sum"}, "files_readfile": nil, "": nil, strings.Repeat("x", maxWrittenName+1): nil,
	} {
		if got := f.Find(name); !slices.Equal(got, want) {
			t.Errorf("%.60q is %q", name, got)
		}
	}
}

func TestAmbiguousNameStaysAmbiguousWithNamespace(t *testing.T) {
	d := directoryOf([]*schema.Tool{toolOf(t, "a", `{"name":"read"}`), toolOf(t, "b", `{"name":"read"}`)})
	if found := d.Candidates("functions.read"); len(found) != 2 {
		t.Errorf("%v", found)
	}
	if _, err := resolve(d, "functions.read"); err == nil || !strings.Contains(err.Error(), "a__read, b__read") {
		t.Errorf("%v", err)
	}
}

func FuzzFold(f *testing.F) {
	f.Add("Files.Read-File")
	f.Add("a__b..c")
	f.Fuzz(func(t *testing.T, name string) {
		once := Fold(name)
		if Fold(once) != once || strings.ContainsAny(once, "-. ") || strings.Contains(once, "__") {
			t.Fatalf("%q is folded to %q", name, once)
		}
		var all Folding[int]
		all.Add(name, 1)
		if len(name) <= maxWrittenName && !slices.Equal(all.Find(name), []int{1}) {
			t.Fatalf("%q is not found under its own name", name)
		}
	})
}
