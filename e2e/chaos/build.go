package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Programs are the folders with the programs of a fleet; see [Build].
type Programs struct {
	// Dir has frontdoor, worker, nats-server and scripted.
	Dir string
	// Unguarded has a front door that writes no intents.
	Unguarded string
	// Clocked has frontdoor, worker and nats-server with clocks that can be set; see
	// [BuildClocked].
	Clocked string
}

// ProgramsIn are programs that [Build] made in dir before.
func ProgramsIn(dir string) Programs {
	return Programs{Dir: filepath.Join(dir, "bin"), Unguarded: filepath.Join(dir, "unguarded"), Clocked: filepath.Join(dir, "clocked")}
}

// Build builds the programs of a fleet from the repository at root into dir. The
// flags are those of the other tests, so that they share what is compiled.
func Build(ctx context.Context, root, dir string) (Programs, error) {
	p := ProgramsIn(dir)
	pure := append(os.Environ(), "CGO_ENABLED=0")
	return p, errors.Join(
		build(ctx, root, os.Environ(), "-o", p.Dir+string(filepath.Separator), "./cmd/frontdoor", "./cmd/worker"),
		build(ctx, root, pure, "-o", filepath.Join(p.Dir, "nats-server"), "github.com/nats-io/nats-server/v2"),
		build(ctx, root, pure, "-o", filepath.Join(p.Dir, "scripted"), "./e2e/servers/scripted"),
		build(ctx, root, os.Environ(), "-tags", "chaos", "-o", p.Unguarded+string(filepath.Separator), "./cmd/frontdoor"),
	)
}

func build(ctx context.Context, root string, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-buildvcs=false"}, args...)...)
	cmd.Dir, cmd.Env = root, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// FindRoot looks upwards from the working folder for the repository.
func FindRoot() (string, error) {
	const first = "module github.com/callyard/callyard"
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for the repository: %w", err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if line, _, _ := strings.Cut(string(text), "\n"); err == nil && strings.TrimSpace(line) == first {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("this is not inside the repository of Callyard; run it there")
		}
		dir = up
	}
}
