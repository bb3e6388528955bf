// Package eval scores how well a model selects tools: it reads a model's answer to a question,
// compares the tools that it calls with those that were expected, and computes precision,
// recall, F1 and accuracy for each sample, its failure type and its reward.
//
// It owns the sample and the response ([Sample], [Response]), the comparison of names
// ([Names]), the three levels of extraction ([Level]), the metrics ([Selection]) and the
// rewards ([Reward]). Its subpackages own the statistics (stats), the readers of data sets
// (dataset), the checker of BFCL (bfcl), and the files of an evaluation (report).
//
// It promises that a score depends on the sample, the response and the settings alone, that
// no step of the normalisation of names makes two tools of a sample equal, and that every
// rule is in docs/reference/evaluation.md with its source.
//
// It refuses to ask a model and to run a tool.
package eval
