package sandbox

import (
	"fmt"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// Fault is one setting that [Resolve] refuses.
type Fault struct {
	Key  string // in the docker section
	Text string // a sentence with the fault and the fix
}

// Faults holds everything that [Resolve] refuses about one server. Its error has one sentence on each
// line.
type Faults struct {
	Server string
	List   []Fault
}

// Error returns the sentences.
func (f *Faults) Error() string {
	lines := make([]string, len(f.List))
	for i, fault := range f.List {
		lines[i] = fmt.Sprintf("docker.%s of the server %q: %s", fault.Key, f.Server, fault.Text)
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns a *schema.Error, so that callers find its kind.
func (f *Faults) Unwrap() error {
	return &schema.Error{Kind: schema.KindInvalidRequest, Detail: f.Error()}
}

func (f *Faults) add(key, format string, args ...any) {
	f.List = append(f.List, Fault{Key: key, Text: fmt.Sprintf(format, args...)})
}
