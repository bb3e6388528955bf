// Package checks tests the files of deploy with the libraries of the programs that read
// them: the queries of the dashboard, the alerts and the autoscaler with Prometheus, the
// chart with Helm, and the objects that it renders with the API types of Kubernetes.
package checks
