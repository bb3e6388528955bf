package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestADumpHidesSecretsAndNothingElse(t *testing.T) {
	c := defaults()
	c.Nats = "nats://user:hunter2@a:4222,nats://hunter2@b:4222"
	c.FrontDoor.APIKey = "hunter2"
	c.FrontDoor.Quota = &testQuota{Rate: 1.5, Burst: 3}
	c.FrontDoor.MaxBody = 64 << 20
	c.Worker.Pools = []testPool{{Glob: "*", Idle: Duration(90 * time.Second)}}
	c.Worker.Extra = map[string]any{"redis": "redis://:hunter2@h:1"}
	var out strings.Builder
	if err := Dump(&out, c); err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "dump.golden"), out.String())
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("a secret is shown:\n%s", out.String())
	}
}

func TestDumpRoundTrips(t *testing.T) {
	c := defaults()
	c.FrontDoor.Quota = &testQuota{Rate: 1.5, Burst: 3}
	c.Worker.Name = "yes: # 'no'\n5"
	c.Worker.Labels = map[string]string{"n": "1", "b": "true", "e": ""}
	c.Worker.Pools = []testPool{{Glob: "*", Idle: Duration(90 * time.Second)}}
	var out strings.Builder
	if err := Dump(&out, c); err != nil {
		t.Fatal(err)
	}
	c.FrontDoor.APIKey = "[secret]"
	got := &testRoot{}
	if _, err := Load(Source{Path: write(t, "c.yaml", out.String())}, got); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if diff := cmp.Diff(c, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
