package housetest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestEachProgramContainsOnlyItsRole fails if a program links a package of another role.
func TestEachProgramContainsOnlyItsRole(t *testing.T) {
	module := moduleName(t, os.DirFS(moduleRoot))
	for _, p := range programs {
		cmd := exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./"+p.root)
		cmd.Dir, cmd.Stderr = moduleRoot, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list %s: %v", p.root, err)
		}
		l := readLinked(string(out))
		if len(l) < 100 {
			t.Fatalf("found only %d packages linked by %s", len(l), p.root)
		}
		for _, v := range p.unsealed(module, l) {
			t.Error(v)
		}
	}
}

func TestLinkToAnotherRoleIsFoundWithItsImportChain(t *testing.T) {
	l := readLinked("m/internal/worker/deep\nm/internal/work\nm/internal/shared m/internal/worker/deep m/internal/work\nm/cmd/frontdoor fmt m/internal/shared\n")
	p := program{"cmd/frontdoor", []forbiddenPackages{{"it runs no servers", []string{"internal/worker", "github.com/moby"}}}}
	found := p.unsealed("m", l)
	if len(found) != 1 || !strings.Contains(found[0], "cmd/frontdoor > internal/shared > internal/worker/deep") || !strings.Contains(found[0], "it runs no servers") {
		t.Errorf("%q", found)
	}
}

// TestBarredPackagesExist fails on rows whose package was moved or removed.
func TestBarredPackagesExist(t *testing.T) {
	for _, p := range programs {
		for _, b := range p.barred {
			for _, root := range b.roots {
				if first, _, _ := strings.Cut(root, "/"); first != "internal" && first != "pkg" {
					continue
				}
				if _, err := os.Stat(moduleRoot + "/" + root); err != nil {
					t.Errorf("%s, which %s must not link, does not exist: update the row in programs", root, p.root)
				}
			}
		}
	}
}
