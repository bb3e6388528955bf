// Package toy trains a small policy on tools through the environments of Callyard, without a
// GPU and without a language model.
//
// The policy is a softmax over forms of an answer and over tools, linear in hashed words of the
// question. It writes its choice as a text. The text goes through `callyard env` over OpenEnv's
// WebSocket, the tools that it calls run, and the reward is returned. Four published methods
// that compare the samples of a group learn from three rewards.
//
// It promises the same curves for the same seeds. It shows that the environment gives rewards
// from which a policy can learn; it refuses to make claims about language models.
package toy
