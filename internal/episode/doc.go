// Package episode runs episodes of environments: tasks that a model solves with tools, for programs
// that train the model.
//
// It owns the environments file ([Load]), the tasks ([Task]), episodes with their steps and
// limits ([Manager], [Episode]), the rewards of episodes (computed by package reward), and the
// transcripts of episodes.
//
// Calls of an episode go through internal/calls like all other calls: the policy applies, and the
// environment configures the response to held calls. An episode keeps its state at one worker,
// under a unique name. If that worker is lost, if the outcome of a call is unknown, or if there is
// no capacity or quota, the episode ends without a reward: it is masked, and its reward is not 0. A
// tool that returns an error or times out is an observation.
//
// A step is never sent twice, an ended episode runs nothing, and a reward depends only on the task
// and the steps.
//
// It is one package because a step, its leases, its reward and its line of the transcript change the
// state of one episode together, and all are ended by one Close.
//
// The package implements no protocol of trainers; see internal/rollout.
package episode
