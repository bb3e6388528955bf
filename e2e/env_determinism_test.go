package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/callyard/callyard/e2e/trainer"
)

// matrixFiles is an environment whose rewards have all terms that need no state.
var matrixFiles = map[string]string{
	"env.yaml": `
environments:
  matrix:
    tools: [todo/*, calculator/evaluate, units/convert]
    tasks_file: tasks.jsonl
    prompt: "Do this: {{.question}}"
    success: 'results.exists(r, r.tool == "evaluate" && r.text.contains(task.result)) || answer == task.result'
    reward: {weights: {success: 1, execution: 0.5, arguments: 0.25, risk: 1}}
`,
	"tasks.jsonl": `{"question":"What is 40 + 0?","result":"40","labels":[{"name":"evaluate","arguments":{"expression":"40 + 0"}}]}
{"question":"What is 40 + 1?","result":"41","labels":[{"name":"evaluate","arguments":{"expression":"40 + 1"}}]}
{"question":"What is 0.1 + 0.2?","result":"0.3","labels":[{"name":"evaluate","arguments":{"expression":"0.1 + 0.2"}}]}
{"question":"Remember milk.","result":"milk","expected":["update","list"]}
`,
}

// actions are the actions of a policy in an episode of the matrix, which contain the seed.
var actions = []func(c *trainer.Conn, seed int) (*trainer.Seen, error){
	func(c *trainer.Conn, seed int) (*trainer.Seen, error) {
		return then(c, "evaluate", map[string]any{"expression": "40 + 1"}, fmt.Sprint(seed))
	},
	func(c *trainer.Conn, seed int) (*trainer.Seen, error) {
		return then(c, "evaluate", map[string]any{"expression": fmt.Sprintf("%d / 3", seed)}, "41")
	},
	func(c *trainer.Conn, _ int) (*trainer.Seen, error) {
		return then(c, "evaluate", map[string]any{"expression": "1 /"}, "")
	},
	func(c *trainer.Conn, seed int) (*trainer.Seen, error) {
		return then(c, "update", map[string]any{"todos": []string{fmt.Sprintf("[%d] milk (planned)", seed)}}, "milk")
	},
	func(c *trainer.Conn, _ int) (*trainer.Seen, error) { return then(c, "nothing", map[string]any{}, "40") },
	func(c *trainer.Conn, _ int) (*trainer.Seen, error) {
		return then(c, "evaluate", map[string]any{"expr": true, "n": 1}, "")
	},
	func(c *trainer.Conn, seed int) (*trainer.Seen, error) {
		return sendText(c, fmt.Sprintf("<tool_call>{\"name\":\"evaluate\",\"arguments\":{\"expression\":\"%d + 0\"}}</tool_call>", seed))
	},
	func(c *trainer.Conn, _ int) (*trainer.Seen, error) {
		return sendText(c, "```json\n{\"name\":\"evaluate\",\"arguments\":{\"expression\":\"40\"}}\n```")
	},
	func(c *trainer.Conn, _ int) (*trainer.Seen, error) {
		return sendText(c, "<tool_call>{\"name\":</tool_call>")
	},
	func(c *trainer.Conn, _ int) (*trainer.Seen, error) { return c.Say("41") },
}

// then calls a tool and finishes with an answer.
func then(c *trainer.Conn, tool string, arguments any, answer string) (*trainer.Seen, error) {
	if _, err := c.Call(tool, arguments); err != nil {
		return nil, err
	}
	return c.Call("finish", map[string]any{"answer": answer})
}

// sendText sends a text with a call, and ends the episode unless that did.
func sendText(c *trainer.Conn, text string) (*trainer.Seen, error) {
	seen, err := c.Say(text)
	if err != nil || seen.Done {
		return seen, err
	}
	return c.Say("That is all.")
}

// rewardMatrix returns the reward of each task, seed and action, as bytes.
func rewardMatrix(t *testing.T, e *environments, seeds, lanes int) []byte {
	t.Helper()
	const tasks = 4
	rows := make([]string, tasks*seeds*len(actions))
	conns := make(chan *trainer.Conn, lanes)
	for range lanes {
		c, err := trainer.Dial(t.Context(), e.url)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns <- c
	}
	runCalls(lanes, len(rows), func(n int) error {
		n--
		c := <-conns
		defer func() { conns <- c }()
		action, seed, task := n%len(actions), n/len(actions)%seeds, n/len(actions)/seeds
		if _, err := c.Reset(map[string]any{"index": task, "seed": seed}); err != nil {
			return err
		}
		seen, err := actions[action](c, seed)
		if err != nil {
			return err
		}
		if !seen.Done || seen.Reward == nil {
			return fmt.Errorf("task %d, seed %d, action %d ended with %+v", task, seed, action, seen)
		}
		rows[n] = fmt.Sprintf("%d %d %d %x\n", task, seed, action, *seen.Reward) // all bits of it
		return nil
	}).none(t, "the rewards")
	return []byte(strings.Join(rows, ""))
}

// TestRewardsDependOnlyOnTaskSeedAndAction computes a matrix of rewards sequentially, with 64
// concurrent episodes, and after a restart.
func TestRewardsDependOnlyOnTaskSeedAndAction(t *testing.T) {
	seeds := 10
	if measured() {
		seeds = 250 // 10,000 rewards
	}
	e := startEnv(t, "", matrixFiles)
	first := rewardMatrix(t, e, seeds, 1)
	kinds := make(map[string]bool)
	for line := range strings.Lines(string(first)) {
		kinds[line[strings.LastIndexByte(line, ' '):]] = true
	}
	if len(kinds) < 6 {
		t.Errorf("the matrix has %d different rewards, too few to tell anything", len(kinds))
	}
	if many := rewardMatrix(t, e, seeds, 64); !bytes.Equal(first, many) {
		t.Error("64 at once have other rewards than one after the other")
	}
	e.stop(t)
	if again := rewardMatrix(t, startEnv(t, "", matrixFiles), seeds, 64); !bytes.Equal(first, again) {
		t.Error("after a restart the rewards are others")
	}
	t.Logf("%d rewards, %d different ones, equal at 1 and 64 at once and after a restart", bytes.Count(first, []byte("\n")), len(kinds))
}
