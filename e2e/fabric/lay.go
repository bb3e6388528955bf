package fabric

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/callyard/callyard/internal/warrant"
)

// lay creates the base folder for the paths of the compose file: the configurations of
// deploy with this fabric's policy, and its secrets. It returns the variables that
// secrets.sh creates.
func (f *Fabric) lay(ctx context.Context) (map[string]string, error) {
	from := filepath.Join(f.options.Source, "deploy")
	for _, folder := range []string{"examples", "nats"} {
		if err := copyFolder(filepath.Join(f.dir, folder), filepath.Join(from, folder)); err != nil {
			return nil, err
		}
	}
	if f.options.Policy != "" {
		if err := write(filepath.Join(f.dir, "examples", "policy.yaml"), []byte(f.options.Policy), 0o644); err != nil {
			return nil, err
		}
	}
	// The script creates only missing secrets. To create keys it would need the callyard command.
	secrets := filepath.Join(f.dir, "secrets")
	if err := os.Mkdir(secrets, 0o700); err != nil {
		return nil, fmt.Errorf("making secrets: %w", err)
	}
	for _, name := range []string{"frontdoor", "approver"} {
		if err := warrant.Write(warrant.Generate(), filepath.Join(secrets, name+".pem"), filepath.Join(secrets, name+".pub.pem")); err != nil {
			return nil, fmt.Errorf("making secrets: %w", err)
		}
	}
	script, err := os.ReadFile(filepath.Join(from, "secrets.sh"))
	if err == nil {
		err = write(filepath.Join(f.dir, "secrets.sh"), script, 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("making secrets: %w", err)
	}
	if out, err := exec.CommandContext(ctx, "bash", filepath.Join(f.dir, "secrets.sh")).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("secrets.sh: %w\n%s", err, out)
	}
	return readEnv(filepath.Join(f.dir, ".env"))
}

// copyFolder copies the files of a folder and makes them readable for all users, because each
// part runs as another user.
func copyFolder(to, from string) error {
	files, err := os.ReadDir(from)
	if err == nil {
		err = os.Mkdir(to, 0o750)
	}
	if err == nil {
		err = os.Chmod(to, 0o755) //nolint:gosec // whatever the mask is
	}
	for _, file := range files {
		if err != nil || !file.Type().IsRegular() {
			continue
		}
		var text []byte
		if text, err = os.ReadFile(filepath.Join(from, file.Name())); err == nil {
			err = write(filepath.Join(to, file.Name()), text, 0o644)
		}
	}
	if err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}

// write writes a file regardless of the umask.
func write(path string, text []byte, mode os.FileMode) error {
	if err := errors.Join(os.WriteFile(path, text, mode), os.Chmod(path, mode)); err != nil {
		return fmt.Errorf("writing what a part reads: %w", err)
	}
	return nil
}

// groupOf returns the group of a file.
func groupOf(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("%s has no group", path)
	}
	return strconv.FormatUint(uint64(s.Gid), 10), nil
}
