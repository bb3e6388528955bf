package deploy_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	engine "github.com/callyard/callyard/e2e/fabric"
)

// buildImages builds the images of a compose file, none of which runs as root.
func buildImages(t testing.TB, file composeFile) engine.Images {
	t.Helper()
	source, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	made := make(engine.Images)
	for _, s := range file.Services {
		what, _, _ := strings.Cut(strings.TrimPrefix(s.Image, "callyard/"), ":")
		if made[what] != "" {
			continue
		}
		images, err := engine.Build(t.Context(), source, what)
		if err != nil {
			t.Fatal(err)
		}
		made[what] = images[what]
		out, err := exec.Command("docker", "image", "inspect", "--format", "{{.Config.User}}", made[what]).CombinedOutput()
		if user := strings.TrimSpace(string(out)); err != nil || user == "" || strings.HasPrefix(user, "0") || user == "root" {
			t.Errorf("the image of %s runs as %q, %v", what, user, err)
		}
		if what == "callyard" {
			ownsData(t, made[what])
		}
	}
	return made
}

// ownsData checks that the folder /data of an image belongs to its user. A new volume there takes the
// owner of the folder, without which "up --data /data" cannot write.
func ownsData(t testing.TB, image string) {
	t.Helper()
	id, err := exec.Command("docker", "create", image).Output()
	if err != nil {
		t.Fatalf("creating a container of %s: %v", image, err)
	}
	container := strings.TrimSpace(string(id))
	defer func() { _ = exec.Command("docker", "rm", container).Run() }() // it never ran
	files, err := exec.Command("docker", "cp", container+":/data", "-").Output()
	if err != nil {
		t.Errorf("%s has no folder /data: %v", image, err)
		return
	}
	h, err := tar.NewReader(bytes.NewReader(files)).Next()
	if err != nil || h.Typeflag != tar.TypeDir || h.Uid != 65532 {
		t.Errorf("/data of %s is not a folder of user 65532: %+v, %v", image, h, err)
	}
}

// makeSecrets runs a copy of secrets.sh and returns its variables, and the base folder for
// the paths of compose files, with those secrets and the files of this folder.
func makeSecrets(t testing.TB) (env map[string]string, dir string) {
	t.Helper()
	root := t.TempDir()
	script := filepath.Join(root, "secrets.sh")
	write(t, script, read(t, "secrets.sh"))
	cmd := exec.Command("bash", script)
	cmd.Env = append(os.Environ(), "CALLYARD="+built(t, "callyard"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("secrets.sh: %v\n%s", err, out)
	}
	for _, folder := range []string{"examples", "nats"} {
		if err := os.CopyFS(filepath.Join(root, folder), os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
	}
	env = make(map[string]string)
	for line := range strings.Lines(read(t, filepath.Join(root, ".env"))) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[name] = value
	}
	return env, root
}

func TestEachComposeFileIsAWholeFabric(t *testing.T) {
	for _, path := range composeFiles {
		t.Run(path, func(t *testing.T) {
			file := composed(t, path)
			images := buildImages(t, file)
			env, dir := makeSecrets(t)
			p, err := engine.OpenProject(t.Context(), file, engine.ProjectOptions{Env: env, Images: images, Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
			p.Watch(t)
			if err := p.Up(t.Context()); err != nil {
				t.Fatal(err)
			}
			callEachKind(t, p, env)
			healthy(t, p)
			if path == "compose.yaml" {
				restores(t, p, dir, env)
			}
		})
	}
}

// callEachKind waits until every front door has three workers, and makes one call of each kind
// at the last of them.
func callEachKind(t *testing.T, p *engine.Project, env map[string]string) {
	t.Helper()
	f := &fabric{agent: "X-API-Key: " + env["AGENT_KEY"], ann: "X-API-Key: " + env["ANN_KEY"]}
	for name, s := range p.File.Services {
		if len(s.Profiles) > 0 {
			continue
		}
		role, _, _ := strings.Cut(name, "-")
		eventually(t, name+" being there", func() error {
			// A restart may have changed its address.
			at, err := p.Container(name).Locate(t.Context())
			if err != nil {
				return err
			}
			switch role {
			case "frontdoor":
				f.door = at
				status, body := ask(t, "GET", at+"/servers/demo", "", f.agent)
				if status != 200 || strings.Count(body, `"initialization_state":"initialized"`) != 4 {
					return fmt.Errorf("%d %.400s", status, body)
				}
			case "approver":
				f.approver = at
				if status, body := ask(t, "GET", at+"/readyz", ""); status != 200 {
					return fmt.Errorf("%d %.400s", status, body)
				}
			}
			return nil
		})
	}
	f.works(t)
	if status, _ := ask(t, "GET", f.door+"/servers", "", "X-API-Key: another"); status != 401 {
		t.Errorf("a wrong key is answered with %d", status)
	}
	for name := range p.File.Services {
		if !strings.HasPrefix(name, "nats") || name == "nats-cli" {
			continue
		}
		if logs, err := p.Container(name).Logs(t.Context(), time.Time{}); err != nil || strings.Contains(logs, "Violation") {
			t.Errorf("something was denied, or the log cannot be read: %v\n%s", err, logs)
		}
	}
}
