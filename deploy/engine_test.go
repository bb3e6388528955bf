package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docker runs the docker command, which must succeed.
func docker(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// gone removes something of the engine when the test ends.
func gone(t testing.TB, args ...string) {
	t.Cleanup(func() {
		if out, err := exec.Command("docker", args...).CombinedOutput(); err != nil {
			t.Errorf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	})
}

// project runs a compose file with the engine and no compose plugin: what the file
// says of a service becomes the flags of docker create.
type project struct {
	t      testing.TB
	name   string
	file   composeFile
	env    map[string]string
	images map[string]string // those of the file, and those of this test
	dir    string            // what "./secrets" stands for
}

var reference = regexp.MustCompile(`\$\{([A-Z_]+)(?::\?[^}]*)?\}`)

func (p *project) expand(text string) string {
	return reference.ReplaceAllStringFunc(text, func(m string) string {
		name := reference.FindStringSubmatch(m)[1]
		value, ok := p.env[name]
		if !ok {
			p.t.Errorf("secrets.sh does not make %s", name)
		}
		return value
	})
}

// up makes networks and volumes, then starts every service.
func (p *project) up() {
	p.t.Helper()
	for name, n := range p.file.Networks {
		args := []string{"network", "create"}
		if n.Internal {
			args = append(args, "--internal")
		}
		docker(p.t, append(args, p.name+"-"+name)...)
		gone(p.t, "network", "rm", p.name+"-"+name)
	}
	for name := range p.file.Volumes {
		docker(p.t, "volume", "create", p.name+"-"+name)
		gone(p.t, "volume", "rm", p.name+"-"+name)
	}
	for name, s := range p.file.Services {
		p.start(name, s)
	}
}

func (p *project) start(name string, s composeService) {
	p.t.Helper()
	container := p.name + "-" + name
	args := []string{"create", "--name", container, "--restart", s.Restart}
	flag := func(name string, values ...string) {
		for _, v := range values {
			args = append(args, name, v)
		}
	}
	if s.ReadOnly {
		args = append(args, "--read-only")
	}
	if s.User != "" {
		flag("--user", s.User)
	}
	flag("--tmpfs", s.Tmpfs...)
	flag("--cap-drop", s.CapDrop...)
	flag("--security-opt", s.Security...)
	for k, v := range s.Environment {
		flag("--env", k+"="+p.expand(v))
	}
	for _, v := range s.Volumes {
		from, to, _ := strings.Cut(v, ":")
		if secret, ok := strings.CutPrefix(from, "./secrets/"); ok {
			from = filepath.Join(p.dir, secret)
		} else if strings.HasPrefix(from, "./") {
			var err error
			if from, err = filepath.Abs(from); err != nil {
				p.t.Fatal(err)
			}
		} else {
			from = p.name + "-" + from
		}
		flag("--volume", from+":"+to)
	}
	for _, port := range s.Ports {
		// Any free port here: another fabric may have those of the file.
		flag("--publish", "127.0.0.1::"+port[strings.LastIndexByte(port, ':')+1:])
	}
	// Ports are published on the last network, which is no internal one.
	last := len(s.Networks) - 1
	flag("--network", p.name+"-"+s.Networks[last])
	flag("--network-alias", name)
	image, ok := p.images[s.Image]
	if !ok {
		p.t.Fatalf("nothing makes the image %s", s.Image)
	}
	docker(p.t, append(append(args, image), s.Command...)...)
	gone(p.t, "rm", "--force", "--volumes", container)
	for _, n := range s.Networks[:last] {
		docker(p.t, "network", "connect", "--alias", name, p.name+"-"+n, container)
	}
	docker(p.t, "start", container)
	p.t.Cleanup(func() {
		if p.t.Failed() {
			out, _ := exec.Command("docker", "logs", "--tail", "30", container).CombinedOutput()
			p.t.Logf("--- %s:\n%s", name, out)
		}
	})
}

// url is where a port of a service is reached. A service that is being started again
// is reached nowhere.
func (p *project) url(service, port string) (string, error) {
	out, err := exec.Command("docker", "port", p.name+"-"+service, port).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	address, _, _ := strings.Cut(string(out), "\n")
	return "http://" + address, nil
}

// buildImages makes the images of a compose file under names of the test's own.
func buildImages(t testing.TB, name string, file composeFile) map[string]string {
	t.Helper()
	made := make(map[string]string)
	for _, s := range file.Services {
		if made[s.Image] != "" {
			continue
		}
		what, _, _ := strings.Cut(strings.TrimPrefix(s.Image, "callyard/"), ":")
		image := name + "/" + what + ":test"
		cmd := exec.Command("images/build.sh", what)
		cmd.Env = append(os.Environ(), "IMAGE="+image)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build.sh %s: %v\n%s", what, err, out)
		}
		made[s.Image] = image
		gone(t, "image", "rm", "--force", image)
		if user := docker(t, "image", "inspect", "--format", "{{.Config.User}}", image); user == "" || strings.HasPrefix(user, "0") || user == "root" {
			t.Errorf("the image of %s runs as %q", what, user)
		}
	}
	return made
}

// makeSecrets runs a copy of secrets.sh and returns its variables and its folder.
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
	env = make(map[string]string)
	for line := range strings.Lines(read(t, filepath.Join(root, ".env"))) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[name] = value
	}
	return env, filepath.Join(root, "secrets")
}

func TestEachComposeFileIsAWholeFabric(t *testing.T) {
	for _, path := range composeFiles {
		t.Run(path, func(t *testing.T) {
			file := composed(t, path)
			name := fmt.Sprintf("callyard-deploy-%d", os.Getpid())
			p := &project{t: t, name: name, file: file, images: buildImages(t, name, file)}
			p.env, p.dir = makeSecrets(t)
			p.up()
			p.works()
		})
	}
}

// works waits until every front door has three workers, and makes one call of each kind
// at the last of them.
func (p *project) works() {
	t := p.t
	t.Helper()
	f := &fabric{agent: "X-API-Key: " + p.env["AGENT_KEY"], ann: "X-API-Key: " + p.env["ANN_KEY"]}
	for name := range p.file.Services {
		role, _, _ := strings.Cut(name, "-")
		eventually(t, name+" being there", func() error {
			switch role {
			case "frontdoor":
				at, err := p.url(name, "8080")
				if err != nil {
					return err
				}
				f.door = at
				status, body := ask(t, "GET", at+"/servers/demo", "", f.agent)
				if status != 200 || strings.Count(body, `"initialization_state":"initialized"`) != 4 {
					return fmt.Errorf("%d %.400s", status, body)
				}
			case "approver":
				at, err := p.url(name, "8081")
				if err != nil {
					return err
				}
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
	for name := range p.file.Services {
		if logs := docker(t, "logs", p.name+"-"+name); strings.HasPrefix(name, "nats") && strings.Contains(logs, "Violation") {
			t.Errorf("something was denied:\n%s", logs)
		}
	}
}
