package fabric_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/e2e/fabric"
)

// childVariable makes the test binary act as a test that is killed, or one
// whose engine does not respond.
const childVariable = "CALLYARD_FABRIC_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "killed":
		leave()
	case "engineless":
		_, err := fabric.Open(context.Background(), fabric.Options{Source: os.Getenv("CALLYARD_FABRIC_TEST_SOURCE")})
		fmt.Println(err)
	default:
		code := m.Run()
		if there, err := left(ownFilter()); err != nil || there != "" {
			fmt.Fprintf(os.Stderr, "this is left: %v\n%s", err, there)
			code = 1
		}
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}
}

// ownFilter returns the filter for objects of this process.
func ownFilter() string { return fmt.Sprintf("dev.callyard.fabric.pid=%d", os.Getpid()) }

// left returns the fabric objects at the engine that match a filter, one per line.
func left(filter string) (string, error) {
	var all strings.Builder
	for _, args := range [][]string{
		{"ps", "--all", "--format", "container {{.Names}}"}, {"network", "ls", "--format", "network {{.Name}}"}, {"volume", "ls", "--format", "volume {{.Name}}"},
	} {
		out, err := exec.Command("docker", append(args, "--filter", "label="+filter)...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("docker %v: %w\n%s", args, err, out)
		}
		all.Write(out)
	}
	return all.String(), nil
}

// leave creates one object of each kind and waits to be killed.
func leave() {
	file := small()
	p, err := fabric.OpenProject(context.Background(), file, fabric.ProjectOptions{Images: fabric.Images{"redis": os.Getenv("CALLYARD_FABRIC_TEST_IMAGE")}, Dir: "."})
	if err == nil {
		err = p.Up(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready", p.Container("redis").ID())
	time.Sleep(time.Hour) // its parent kills it
}

// small is a compose file with one object of each kind.
func small() fabric.Compose {
	var c fabric.Compose
	c.Services = map[string]fabric.Service{"redis": {
		Image: "redis:7", User: "999:999", ReadOnly: true, CapDrop: []string{"ALL"}, Networks: fabric.On("store"), Volumes: []string{"data:/data"},
		Command: []string{"redis-server", "--dir", "/data", "--protected-mode", "no"},
	}}
	c.Networks = map[string]fabric.Network{"store": {Internal: true}}
	c.Volumes = map[string]any{"data": nil}
	return c
}
