package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Programs names the folders with the programs of a fleet; see [Build].
type Programs struct {
	// Dir has frontdoor, worker, nats-server and scripted.
	Dir string
	// Unguarded has a front door that writes no intents.
	Unguarded string
	// Clocked has frontdoor, worker and nats-server with adjustable clocks; see
	// [BuildClocked].
	Clocked string
}

// ProgramsIn returns the programs that an earlier [Build] put into dir.
func ProgramsIn(dir string) Programs {
	return Programs{Dir: filepath.Join(dir, "bin"), Unguarded: filepath.Join(dir, "unguarded"), Clocked: filepath.Join(dir, "clocked")}
}

// Build builds the programs of a fleet from the repository at root into dir. It uses the
// flags of the other tests, so that they share the build cache.
func Build(ctx context.Context, root, dir string) (Programs, error) {
	p := ProgramsIn(dir)
	pure := append(os.Environ(), "CGO_ENABLED=0")
	unguarded, err := writeOverlay(filepath.Join(dir, "unguarded.json"), map[string]string{
		filepath.Join(root, "internal", "batch", "intent.go"): filepath.Join(root, "e2e", "chaos", "testdata", "unguarded", "intent.go"),
	})
	if err != nil {
		return p, err
	}
	return p, errors.Join(
		build(ctx, root, os.Environ(), "-o", p.Dir+string(filepath.Separator), "./cmd/frontdoor", "./cmd/worker"),
		build(ctx, root, pure, "-o", filepath.Join(p.Dir, "nats-server"), "github.com/nats-io/nats-server/v2"),
		build(ctx, filepath.Join(root, "e2e"), pure, "-o", filepath.Join(p.Dir, "scripted"), "./servers/scripted"),
		build(ctx, root, os.Environ(), "-overlay", unguarded, "-o", p.Unguarded+string(filepath.Separator), "./cmd/frontdoor"),
	)
}

// writeOverlay writes an overlay file for go build to path, which replaces files with others,
// and returns path for the flag -overlay. A replacement for a file that does not exist adds
// the file.
func writeOverlay(path string, replace map[string]string) (string, error) {
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("writing which source files are replaced: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("writing which source files are replaced: %w", err)
	}
	if err := os.WriteFile(path, list, 0o600); err != nil {
		return "", fmt.Errorf("writing which source files are replaced: %w", err)
	}
	return path, nil
}

func build(ctx context.Context, module string, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-buildvcs=false"}, args...)...)
	cmd.Dir, cmd.Env = module, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// FindRoot returns the repository that contains the working folder.
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
