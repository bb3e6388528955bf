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

// Images maps the parts of deploy/images/build.sh, such as frontdoor, approver, worker, nats and
// redis, to image names.
type Images map[string]string

// Source returns the folder with the source of this module: the module of the test itself, or
// the version in the module cache that the test's module requires.
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

// Build builds the images of these parts and returns their names. It runs
// deploy/images/build.sh of the source, which needs bash, Go and the docker command. If the
// files of an image did not change, it costs little more than linking. The images remain at
// the engine for the next time.
func Build(ctx context.Context, source string, parts ...string) (Images, error) {
	made := make(Images, len(parts))
	for _, part := range parts {
		// Different source folders use different image names.
		name := fmt.Sprintf("callyard-fabric/%s:%.8x", part, sha256.Sum256([]byte(source)))
		before, _ := docker(ctx, "image", "inspect", "--format", "{{.Id}}", name) // fails the first time
		cmd := exec.CommandContext(ctx, "bash", filepath.Join(source, "deploy", "images", "build.sh"), part)
		cmd.Dir = source
		cmd.Env = append(os.Environ(), "IMAGE="+name, "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("building the image of %s: %w\n%s", part, err, out)
		}
		if after, err := docker(ctx, "image", "inspect", "--format", "{{.Id}}", name); err == nil && before != "" && before != after {
			_, _ = docker(ctx, "image", "rm", before) // the old image, which has no name any more; it is kept if in use
		}
		made[part] = name
	}
	return made, nil
}

// BuildFrom builds an image from the text of a Dockerfile and from files. files maps paths in
// the build context to paths on this machine. Use it for workers that need more than a
// static program: COPY --from the images of Build.
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
