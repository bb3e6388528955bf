package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
)

// warrantKeys creates a key pair like an operator.
func warrantKeys(t testing.TB, name string) (private, public string) {
	t.Helper()
	base := filepath.Join(t.TempDir(), name)
	if code, _, said := command(t, nil, "keys", "warrant", base); code != 0 {
		t.Fatalf("keys warrant ends with %d: %s", code, said)
	}
	return base + ".pem", base + ".pub.pem"
}

// callerKeys returns the variables with which front doors sign the calls that callers confirm,
// and those with which workers trust them.
func callerKeys(t testing.TB) (signs, trusts []string) {
	t.Helper()
	private, public := warrantKeys(t, "frontdoor")
	return []string{"CALLYARD_WARRANTS_KEY_FILE=" + private}, []string{"CALLYARD_WARRANTS_CALLER_KEYS=" + public}
}

func TestWorkerWithoutKeysRefusesConfirmedCallsWithReason(t *testing.T) {
	nats := startNATS(t, t.TempDir())
	effects := filepath.Join(t.TempDir(), "effects")
	servers := serversFile(t, map[string]entry{"pay": risky(2, scripted(mcptest.Echo)), "calm": scripted(mcptest.Echo)})
	w := startWorker(t, setup{nats: nats.url, servers: servers})
	signs, _ := callerKeys(t)
	d := startFrontDoor(t, setup{nats: nats.url, env: signs})
	d.waitServers(t, 1, "pay", "calm")
	w.says(t, "this worker trusts no warrant keys")
	h := d.hold(t, "pay", "effect", fmt.Sprintf(`{"path":%q,"id":"x"}`, effects))
	refused := d.confirm(t, h.ID, "true").problem(t, http.StatusForbidden, "forbidden")
	if !strings.Contains(refused.Detail, "warrants.caller_keys") {
		t.Errorf("it does not say what to configure: %s", refused.Detail)
	}
	if s := d.callState(t, h.CallID); s.State != "failed" {
		t.Errorf("the call is %s", s.State)
	}
	d.call(t, "calm", "echo", `{"text":"x"}`)
	if _, err := os.Stat(effects); !os.IsNotExist(err) {
		t.Errorf("it ran: %v", readEffects(t, effects))
	}
}

func TestUntrustedSignatureIsRefused(t *testing.T) {
	nats := startNATS(t, t.TempDir())
	effects := filepath.Join(t.TempDir(), "effects")
	_, trusts := callerKeys(t)
	others, _ := callerKeys(t)
	startWorker(t, setup{nats: nats.url, env: trusts, servers: serversFile(t, map[string]entry{"pay": risky(2, scripted(mcptest.Echo))})})
	d := startFrontDoor(t, setup{nats: nats.url, env: others})
	d.waitServers(t, 1, "pay")
	h := d.hold(t, "pay", "effect", fmt.Sprintf(`{"path":%q,"id":"x"}`, effects))
	d.confirm(t, h.ID, "true").problem(t, http.StatusForbidden, "forbidden")
	if _, err := os.Stat(effects); !os.IsNotExist(err) {
		t.Errorf("it ran: %v", readEffects(t, effects))
	}
}

func TestUnreadableKeyStopsTheStart(t *testing.T) {
	_, public := warrantKeys(t, "k")
	for name, env := range map[string]string{
		"no private key": "CALLYARD_WARRANTS_KEY_FILE=" + public, "no such file": "CALLYARD_WARRANTS_PEOPLE_KEYS=/does/not/exist.pem",
	} {
		if code, _, said := command(t, []string{env}, "config", "check"); code != 2 || !strings.Contains(said, "warrants.") {
			t.Errorf("%s: %d, %s", name, code, said)
		}
	}
}
