package housetest

import (
	"os/exec"
	"strings"
	"testing"
)

// notLinked are the packages that a program must not link, by their roots.
var notLinked = map[string]struct {
	roots  []string
	reason string
}{
	"cmd/callyard": {
		roots: []string{
			"gonum.org/", "codeberg.org/go-fonts/", "codeberg.org/go-pdf/", "codeberg.org/go-latex/", "git.sr.ht/~sbinet/", "github.com/ajstarks/svgo",
			"github.com/golang/freetype", "golang.org/x/image/", "image/jpeg", "image/png",
		},
		reason: "what draws plots is in the module bench, whose program `callyard bench` starts",
	},
}

func TestProgramsLinkNothingThatTheyDoNotNeed(t *testing.T) {
	for program, no := range notLinked {
		cmd := exec.Command("go", "list", "-deps", "./"+program)
		cmd.Dir = moduleRoot
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", program, err)
		}
		linked := strings.Fields(string(out))
		if len(linked) < 100 {
			t.Fatalf("%s links %d packages only", program, len(linked))
		}
		for _, path := range linked {
			for _, root := range no.roots {
				if path == root || strings.HasPrefix(path, root) {
					t.Errorf("%s links %s\n\twhy: %s", program, path, no.reason)
				}
			}
		}
	}
}
