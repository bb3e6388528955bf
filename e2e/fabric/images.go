package fabric

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Module is the path of the module whose source the images are built from.
const Module = "github.com/callyard/callyard"

// Images has the name of an image for each part: frontdoor, approver, worker, nats, redis,
// and whatever else deploy/images/build.sh makes.
type Images map[string]string

// Source is the folder of this module's source: that of the module which the test is part
// of, or where the go command keeps the version that the test's module asks for.
func Source(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", Module)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		return "", fmt.Errorf("looking for the source of %s (run the test in a module that requires it, or set Options.Source): %w\n%s", Module, errors.Join(err), said.String())
	}
	return dir, nil
}

// Build makes the images of these parts and returns their names. It runs
// deploy/images/build.sh of the source, which needs bash, Go and the docker command; an
// image whose files did not change costs little more than linking. The images stay at the
// engine for the next time.
func Build(ctx context.Context, source string, parts ...string) (Images, error) {
	made := make(Images, len(parts))
	for _, part := range parts {
		// Folders with other sources do not take each other's names away.
		name := fmt.Sprintf("callyard-fabric/%s:%.8x", part, sha256.Sum256([]byte(source)))
		before, _ := docker(ctx, "image", "inspect", "--format", "{{.Id}}", name) // none the first time
		cmd := exec.CommandContext(ctx, "bash", filepath.Join(source, "deploy", "images", "build.sh"), part)
		cmd.Dir = source
		cmd.Env = append(os.Environ(), "IMAGE="+name, "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("building the image of %s: %w\n%s", part, err, out)
		}
		if after, err := docker(ctx, "image", "inspect", "--format", "{{.Id}}", name); err == nil && before != "" && before != after {
			_, _ = docker(ctx, "image", "rm", before) // it has no name any more; in use, it stays
		}
		made[part] = name
	}
	return made, nil
}

// BuildFrom makes an image of a Dockerfile's text and of files: by their paths in the
// build context, where on this machine they are. It is for workers that need more than a
// static program: COPY --from the images that Build made.
func BuildFrom(ctx context.Context, name, dockerfile string, files map[string]string) error {
	dir, err := os.MkdirTemp("", "callyard-image-")
	if err != nil {
		return fmt.Errorf("making the image %s: %w", name, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o600); err != nil {
		return fmt.Errorf("making the image %s: %w", name, err)
	}
	for to, from := range files {
		to = filepath.Join(dir, filepath.FromSlash(to))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // in the image it is for another user
			return fmt.Errorf("making the image %s: %w", name, err)
		}
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o755) //nolint:gosec // programs, which any user of the image may start
		}
		if err == nil {
			err = os.Chmod(to, 0o755) //nolint:gosec // whatever the mask is
		}
		if err != nil {
			return fmt.Errorf("making the image %s: %w", name, err)
		}
	}
	_, err = docker(ctx, "build", "--quiet", "--tag", name, dir)
	return err
}

// docker runs the docker command.
func docker(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}
