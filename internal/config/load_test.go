package config

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// secretText stands for the secret type of the telemetry package.
type secretText string

func (s *secretText) UnmarshalText(b []byte) error {
	if strings.Contains(string(b), " ") {
		return errors.New("the secret " + string(b) + " holds a space")
	}
	*s = secretText(b)
	return nil
}
func (secretText) LogValue() slog.Value         { return slog.StringValue("[secret]") }
func (secretText) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

type testDoor struct {
	Listen   string        `yaml:"listen"`
	Timeout  time.Duration `yaml:"timeout"`
	MaxBody  Size          `yaml:"max_body"`
	Origins  []string      `yaml:"origins"`
	APIKey   secretText    `yaml:"api_key"`
	Quota    *testQuota    `yaml:"quota"`
	Insecure bool          `yaml:"insecure"`
}

type testQuota struct {
	Rate  float64 `yaml:"rate"`
	Burst uint16  `yaml:"burst"`
}

func (d testDoor) Validate() []Fault {
	var faults []Fault
	if d.Timeout > time.Hour {
		faults = append(faults, Faultf("timeout", "must be at most 1h; lower it."))
	}
	if d.Insecure && d.APIKey != "" {
		faults = append(faults, Faultf("api_key", "is not used while insecure is true; remove one of them."))
	}
	return faults
}

type testWorker struct {
	Name    string            `yaml:"name"`
	Labels  map[string]string `yaml:"labels"`
	Pools   []testPool        `yaml:"pools"`
	InFlite int               `yaml:"-"`
	Limits  testLimits        `yaml:",inline"`
	Extra   any               `yaml:"extra"`
}

type testLimits struct {
	MaxResult Size
	InFlight  int
}

type testPool struct {
	Glob string   `yaml:"glob"`
	Idle Duration `yaml:"idle"`
}

func (p *testPool) Validate() []Fault {
	if p.Glob == "" {
		return []Fault{Faultf("glob", "is required; add it.")}
	}
	return nil
}

type testRoot struct {
	Nats      string     `yaml:"nats"`
	FrontDoor testDoor   `yaml:"front_door"`
	Worker    testWorker `yaml:"worker"`
}

func defaults() *testRoot {
	return &testRoot{
		Nats:      "nats://127.0.0.1:4222",
		FrontDoor: testDoor{Listen: "127.0.0.1:8080", Timeout: time.Minute, Origins: []string{"a"}},
		Worker:    testWorker{Labels: map[string]string{"zone": "default"}},
	}
}

var testEnv = []string{"HOME=/home/someone", "ZONE=north", "DOOR_KEY=k-123", "LIMIT=12", "BAD=hunter2 hunter2", "EMPTY="}

func TestEveryFaultOfAFileIsReportedAtOnceWithItsPlace(t *testing.T) {
	for _, path := range files(t, "faults/*.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			_, err := Load(Source{Path: path, Env: testEnv, Others: []string{"approver"}}, defaults())
			var faults *Faults
			if !errors.As(err, &faults) {
				t.Fatalf("got %T %v, want faults", err, err)
			}
			golden(t, strings.TrimSuffix(path, "yaml")+"golden", err.Error()+"\n")
			if strings.Contains(err.Error(), "hunter2") {
				t.Error("a secret is repeated in a fault")
			}
		})
	}
}

func TestConfigLayersOverrideInOrder(t *testing.T) {
	path := write(t, "c.yaml", `
nats: nats://${ZONE}.example:4222
front_door:
  listen: 0.0.0.0:${PORT:-9000}
  timeout: 5s
  max_body: 2MiB
  origins: [b, c]
  api_key: ${DOOR_KEY}
  quota: {rate: 0.5, burst: 10}
worker:
  name: "cost $${ZONE} $5 $"
  labels: {disk: ssd}
  pools:
  - glob: "fs_*"
    idle: 1h30m
  in_flight: ${LIMIT}
  max_result: 64MiB
  extra: {list: [1, 2.5, true, null, text]}
approver:
  anything: [goes]
`)
	keyFile := write(t, "key", "from-file\n")
	got := defaults()
	_, err := Load(Source{
		Path: path, Others: []string{"approver"}, Ignore: []string{"CALLYARD_URL", "CALLYARD_TEST_*"},
		Env: append(testEnv,
			"CALLYARD_FRONT_DOOR_TIMEOUT=7d", "CALLYARD_FRONT_DOOR_ORIGINS= x , y ", "CALLYARD_FRONT_DOOR_API_KEY_FILE="+keyFile,
			"CALLYARD_FRONT_DOOR_QUOTA_BURST=20", `CALLYARD_WORKER_LABELS={"disk":"hdd"}`, "CALLYARD_FRONT_DOOR_INSECURE=false",
			`CALLYARD_WORKER_POOLS=[{"glob":"${HOME}","idle":"1s"}]`, "CALLYARD_APPROVER_LISTEN=x", "CALLYARD_URL=x", "CALLYARD_TEST_A=x",
			"CALLYARD_COOKIE=x", "CALLYARD_FRONTDOOR_SERVICE_HOST=10.0.0.1", "CALLYARD_FRONTDOOR_PORT=tcp://10.0.0.1:80",
			"CALLYARD_FRONTDOOR_PORT_80_TCP_ADDR=10.0.0.1"),
		Flags: []Flag{{"--listen", "front_door.listen", ":1"}, {"--timeout", "front_door.timeout", "30s"}},
	}, got)
	if err != nil {
		t.Fatal(err)
	}
	want := &testRoot{
		Nats: "nats://north.example:4222",
		FrontDoor: testDoor{Listen: ":1", Timeout: 30 * time.Second, MaxBody: 2 << 20, Origins: []string{"x", "y"},
			APIKey: "from-file", Quota: &testQuota{Rate: 0.5, Burst: 20}},
		Worker: testWorker{Name: "cost ${ZONE} $5 $", Labels: map[string]string{"disk": "hdd"},
			Pools:  []testPool{{Glob: "${HOME}", Idle: Duration(time.Second)}},
			Limits: testLimits{MaxResult: 64 << 20, InFlight: 12},
			Extra:  map[string]any{"list": []any{int64(1), 2.5, true, nil, "text"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFaultsNameTheVariableOrFlag(t *testing.T) {
	secretFile := write(t, "key", "hunter2 hunter2")
	_, err := Load(Source{
		Path: write(t, "c.yaml", "front_door:\n  timeout: 5s\n"),
		Env: []string{
			"CALLYARD_FRONT_DOOR_TIMEOUT=2h", "CALLYARD_FRONT_DOOR_MAX_BODY=5", "CALLYARD_FRONTDOOR_LISTEN=x", "CALLYARD_NONSENSE=x",
			"CALLYARD_FRONT_DOOR_LISTEN=a", "CALLYARD_FRONT_DOOR_LISTEN_FILE=/b", "CALLYARD_NATS_FILE=/does/not/exist",
			"CALLYARD_FRONT_DOOR_API_KEY_FILE=" + secretFile, "CALLYARD_WORKER_NAME_FILE=hunter2", "CALLYARD_WORKER_LABELS=zone=a",
			"CALLYARD_WORKER_POOLS=a,b", "CALLYARD_WORKER_IN_FLIGHT=", `CALLYARD_WORKER_EXTRA={"a":`,
		},
		Flags: []Flag{{"--rate", "front_door.quota.rate", "fast"}},
	}, defaults())
	if err == nil {
		t.Fatal("no fault")
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a secret is repeated:\n%v", err)
	}
	golden(t, filepath.Join("testdata", "variables.golden"), err.Error()+"\n")
}

func TestAMapOfSectionsIsFilledLikeAStruct(t *testing.T) {
	door, worker := testDoor{}, testWorker{}
	path := write(t, "c.yaml", "front_door: {listen: a}\nworker:\n")
	_, err := Load(Source{Path: path, Env: []string{"CALLYARD_WORKER_NAME=w"}}, map[string]any{"front_door": &door, "worker": &worker})
	if err != nil || door.Listen != "a" || worker.Name != "w" {
		t.Errorf("got %v, %q, %q", err, door.Listen, worker.Name)
	}
}

func TestFilesWithoutSettingsKeepTheDefaults(t *testing.T) {
	for _, text := range []string{"", "# only a comment\n", "---\n", "front_door:\n  # listen: x\n", "\ufeff# saved by an editor\n"} {
		got := defaults()
		if _, err := Load(Source{Path: write(t, "c.yaml", text)}, got); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(defaults(), got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestCRLFLineEndingsAreAccepted(t *testing.T) {
	got := defaults()
	path := write(t, "c.yaml", "nats: a\r\nfront_door:\r\n  listen: b\r\n  timeout: 5\r\n")
	_, err := Load(Source{Path: path}, got)
	if got.Nats != "a" || got.FrontDoor.Listen != "b" || err == nil || !strings.HasPrefix(err.Error(), path+":4:12: ") {
		t.Errorf("got %q, %q, %v", got.Nats, got.FrontDoor.Listen, err)
	}
}

func TestAnUnreadableFileIsAFault(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, make([]byte, maxConfigFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.yaml"):          "does not exist",
		dir:                                      "cannot be read",
		big:                                      "larger than 1MiB",
		write(t, "latin1.yaml", "nats: caf\xe9"): "not UTF-8",
	} {
		var faults *Faults
		_, err := Load(Source{Path: path}, defaults())
		if !errors.As(err, &faults) || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

func TestYAMLAliasExpansionIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("worker:\n  extra:\n  - &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		last := "*a" + string(rune('0'+(i-1)%10))
		b.WriteString("  - &a" + string(rune('0'+i%10)) + " [" + strings.Repeat(last+", ", 9) + last + "]\n")
	}
	_, err := Load(Source{Path: write(t, "c.yaml", b.String())}, defaults())
	if err == nil || !strings.Contains(err.Error(), "more than 100000 values") {
		t.Errorf("got %.300v", err)
	}
}

func TestNumberOfReportedFaultsIsBounded(t *testing.T) {
	var b strings.Builder
	for range 5000 {
		b.WriteString("- {idel: 1}\n")
	}
	_, err := Load(Source{Path: write(t, "c.yaml", "worker:\n  pools:\n"+indent(b.String()))}, defaults())
	var faults *Faults
	if !errors.As(err, &faults) || len(faults.List) != maxFaults+1 {
		t.Fatalf("got %d faults", len(faults.List))
	}
}

func indent(s string) string { return "  " + strings.ReplaceAll(s, "\n- ", "\n  - ") }

func TestProgrammingErrorsAreNotReportedAsFaults(t *testing.T) {
	type loop struct{ Next *loop }
	type clash struct {
		A struct{ B string } `yaml:"a"`
		C string             `yaml:"a_b"`
	}
	type channel struct{ C chan int }
	for name, into := range map[string]any{
		"no pointer": testRoot{}, "nil section": map[string]any{"a": nil}, "recursive": &loop{}, "shared variable": &clash{}, "channel": &channel{},
	} {
		var faults *Faults
		if _, err := Load(Source{}, into); err == nil || errors.As(err, &faults) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Load(Source{Flags: []Flag{{"--x", "no.key", ""}}}, defaults()); err == nil {
		t.Error("a flag without a key: no error")
	}
}
