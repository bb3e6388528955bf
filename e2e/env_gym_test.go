package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"testing"
)

// TestNeMoGymRoutesPlayEpisodes plays episodes in the way of NeMo Gym: seed_session, a route for
// each tool, and verify, with the session in a cookie.
func TestNeMoGymRoutesPlayEpisodes(t *testing.T) {
	e := startEnv(t, "", notesFiles)
	for _, c := range []struct {
		expression string
		want       float64
	}{{"40 + 2", 5}, {"1 +", 3.5}} {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		browser := *client(t)
		browser.Jar = jar
		post := func(path string, body any) (status int, answer map[string]any) {
			t.Helper()
			text, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := browser.Post(e.url+path, "application/json", bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
				t.Fatal(err)
			}
			return resp.StatusCode, answer
		}
		if status, answer := post("/evaluate", map[string]any{"expression": "1"}); status == http.StatusOK {
			t.Errorf("without a session a tool answers %v", answer)
		}
		if status, answer := post("/seed_session", map[string]any{"index": 2}); status != http.StatusOK || answer["index"] != 2.0 {
			t.Fatalf("seed_session: %d %v", status, answer)
		}
		if status, answer := post("/evaluate", map[string]any{"expression": c.expression}); status != http.StatusOK || answer["result"] == nil || answer["done"] != false {
			t.Errorf("evaluate: %d %v", status, answer)
		}
		status, answer := post("/verify", map[string]any{"response": map[string]any{"id": "r1"}})
		if status != http.StatusOK || answer["reward"] != c.want || answer["mask_sample"] != false || answer["response"] == nil {
			t.Errorf("verify of %s: %d %v, want the reward %v", c.expression, status, answer, c.want)
		}
		if status, answer := post("/verify", map[string]any{}); status == http.StatusOK {
			t.Errorf("a session that was verified answers %v", answer)
		}
	}
}
