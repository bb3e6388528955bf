// Package checks tests the files of deploy with the libraries of the programs that read
// them: the queries of the dashboard, the alerts and the autoscaler with Prometheus, the
// chart with Helm, and its rendered objects with the Kubernetes API types.
package checks
