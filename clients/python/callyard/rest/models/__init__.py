"""Contains all the data models used in inputs/outputs"""

from .accept_request import AcceptRequest
from .accept_tool import AcceptTool
from .accepted_call import AcceptedCall
from .accepted_call_arguments import AcceptedCallArguments
from .accepted_call_outcome import AcceptedCallOutcome
from .accepted_digest import AcceptedDigest
from .added_server import AddedServer
from .added_server_status import AddedServerStatus
from .allowance import Allowance
from .allowance_pattern import AllowancePattern
from .allowance_value import AllowanceValue
from .api_key import APIKey
from .api_key_change import APIKeyChange
from .api_key_change_role import APIKeyChangeRole
from .api_key_limits import APIKeyLimits
from .api_key_list import APIKeyList
from .api_key_origin import APIKeyOrigin
from .api_key_request import APIKeyRequest
from .api_key_request_role import APIKeyRequestRole
from .api_key_role import APIKeyRole
from .api_key_rotation import APIKeyRotation
from .argument_fault import ArgumentFault
from .audit_fault import AuditFault
from .audit_fault_kind import AuditFaultKind
from .audit_record import AuditRecord
from .audit_record_list import AuditRecordList
from .audit_verification import AuditVerification
from .batch import Batch
from .batch_call import BatchCall
from .batch_call_arguments import BatchCallArguments
from .batch_counts import BatchCounts
from .batch_labels import BatchLabels
from .batch_list import BatchList
from .batch_request import BatchRequest
from .batch_request_labels import BatchRequestLabels
from .batch_result import BatchResult
from .batch_state import BatchState
from .call import Call
from .call_arguments import CallArguments
from .call_list import CallList
from .call_record import CallRecord
from .call_record_decision import CallRecordDecision
from .call_record_error import CallRecordError
from .call_request import CallRequest
from .call_request_arguments import CallRequestArguments
from .call_state import CallState
from .call_tool_body import CallToolBody
from .call_tool_result import CallToolResult
from .call_tool_result_execution_environment import CallToolResultExecutionEnvironment
from .call_tool_result_meta import CallToolResultMeta
from .completed_call import CompletedCall
from .completed_call_execution_environment import CompletedCallExecutionEnvironment
from .completed_call_meta import CompletedCallMeta
from .completed_call_outcome import CompletedCallOutcome
from .configuration_disagreement import ConfigurationDisagreement
from .configuration_disagreement_part import ConfigurationDisagreementPart
from .configuration_part import ConfigurationPart
from .configuration_part_outcome import ConfigurationPartOutcome
from .configuration_part_part import ConfigurationPartPart
from .configuration_part_servers import ConfigurationPartServers
from .configuration_status import ConfigurationStatus
from .configuration_version import ConfigurationVersion
from .configured_process import ConfiguredProcess
from .configured_process_role import ConfiguredProcessRole
from .confirm_calls import ConfirmCalls
from .confirm_request import ConfirmRequest
from .confirmation_request import ConfirmationRequest
from .confirmation_request_outcome import ConfirmationRequestOutcome
from .confirmed_calls import ConfirmedCalls
from .content_block import ContentBlock
from .content_block_resource import ContentBlockResource
from .conversion import Conversion
from .conversion_calls_item import ConversionCallsItem
from .conversion_note import ConversionNote
from .conversion_note_kind import ConversionNoteKind
from .conversion_request import ConversionRequest
from .conversion_request_from import ConversionRequestFrom
from .conversion_request_to import ConversionRequestTo
from .conversion_tools_item import ConversionToolsItem
from .create_tool_calls_format import CreateToolCallsFormat
from .decision import Decision
from .disabled_tools import DisabledTools
from .draining_worker import DrainingWorker
from .draining_worker_status import DrainingWorkerStatus
from .evaluation import Evaluation
from .evaluation_category import EvaluationCategory
from .evaluation_category_types import EvaluationCategoryTypes
from .evaluation_check import EvaluationCheck
from .evaluation_check_categories import EvaluationCheckCategories
from .evaluation_check_errors import EvaluationCheckErrors
from .evaluation_estimate import EvaluationEstimate
from .evaluation_execution import EvaluationExecution
from .evaluation_execution_masked_because import EvaluationExecutionMaskedBecause
from .evaluation_level import EvaluationLevel
from .evaluation_level_level import EvaluationLevelLevel
from .evaluation_level_types import EvaluationLevelTypes
from .evaluation_list import EvaluationList
from .evaluation_metrics import EvaluationMetrics
from .evaluation_pass import EvaluationPass
from .evaluation_report import EvaluationReport
from .evaluation_report_scoring import EvaluationReportScoring
from .evaluation_report_settings import EvaluationReportSettings
from .evaluation_reward import EvaluationReward
from .evaluation_turn import EvaluationTurn
from .evaluation_turn_types import EvaluationTurnTypes
from .exported_key import ExportedKey
from .exported_key_origin import ExportedKeyOrigin
from .fabric import Fabric
from .fabric_state import FabricState
from .fabric_state_format import FabricStateFormat
from .fleet import Fleet
from .fleet_change import FleetChange
from .fleet_change_type import FleetChangeType
from .former_secret import FormerSecret
from .found_tool import FoundTool
from .found_tool_decision import FoundToolDecision
from .found_tool_risk import FoundToolRisk
from .front_door_item import FrontDoorItem
from .front_door_list import FrontDoorList
from .front_door_load import FrontDoorLoad
from .front_door_time import FrontDoorTime
from .get_call_include import GetCallInclude
from .get_prompt_body import GetPromptBody
from .get_prompt_result import GetPromptResult
from .get_prompt_result_messages_item import GetPromptResultMessagesItem
from .get_server_openapi_response_200 import GetServerOpenapiResponse200
from .get_set_openapi_response_200 import GetSetOpenapiResponse200
from .get_usage_by_item import GetUsageByItem
from .get_usage_interval import GetUsageInterval
from .health import Health
from .health_losses import HealthLosses
from .health_part import HealthPart
from .health_part_outcome import HealthPartOutcome
from .health_part_part import HealthPartPart
from .health_server import HealthServer
from .health_server_initialization_state import HealthServerInitializationState
from .health_status import HealthStatus
from .held_call import HeldCall
from .held_call_by import HeldCallBy
from .held_calls import HeldCalls
from .line_refusal import LineRefusal
from .list_audit_kind_item import ListAuditKindItem
from .list_batches_state import ListBatchesState
from .list_calls_state_item import ListCallsStateItem
from .list_tools_format import ListToolsFormat
from .list_tools_include import ListToolsInclude
from .list_webhook_deliveries_state import ListWebhookDeliveriesState
from .new_api_key import NewAPIKey
from .new_api_key_origin import NewAPIKeyOrigin
from .new_api_key_role import NewAPIKeyRole
from .own_tool_call import OwnToolCall
from .own_tool_call_arguments import OwnToolCallArguments
from .own_tool_call_call import OwnToolCallCall
from .policy_decision import PolicyDecision
from .policy_decision_approval import PolicyDecisionApproval
from .policy_decision_approval_by import PolicyDecisionApprovalBy
from .policy_decision_arguments import PolicyDecisionArguments
from .policy_decision_decision import PolicyDecisionDecision
from .policy_decision_sandbox import PolicyDecisionSandbox
from .policy_dry_run import PolicyDryRun
from .policy_dry_run_change import PolicyDryRunChange
from .policy_dry_run_change_now import PolicyDryRunChangeNow
from .policy_dry_run_change_was import PolicyDryRunChangeWas
from .policy_dry_run_request import PolicyDryRunRequest
from .policy_dry_run_rule import PolicyDryRunRule
from .policy_dry_run_unknown import PolicyDryRunUnknown
from .policy_test_principal import PolicyTestPrincipal
from .policy_test_request import PolicyTestRequest
from .policy_test_request_arguments import PolicyTestRequestArguments
from .policy_text import PolicyText
from .preflight import Preflight
from .preflight_tool import PreflightTool
from .preflight_tool_decision import PreflightToolDecision
from .preflight_tool_risk import PreflightToolRisk
from .preflight_tool_state import PreflightToolState
from .probe_status import ProbeStatus
from .probe_status_status import ProbeStatusStatus
from .problem import Problem
from .problem_fault import ProblemFault
from .problem_rpc_error import ProblemRPCError
from .provider_loosening import ProviderLoosening
from .provider_tool_list import ProviderToolList
from .provider_tool_list_format import ProviderToolListFormat
from .provider_tool_list_tools_item import ProviderToolListToolsItem
from .provider_tool_name import ProviderToolName
from .put_set_if_none_match import PutSetIfNoneMatch
from .quarantined_tool import QuarantinedTool
from .read_resource_result import ReadResourceResult
from .read_resource_result_contents_item import ReadResourceResultContentsItem
from .refused_call import RefusedCall
from .rejected import Rejected
from .rejected_status import RejectedStatus
from .removed_server import RemovedServer
from .removed_server_status import RemovedServerStatus
from .removed_set import RemovedSet
from .removed_set_status import RemovedSetStatus
from .restarted_server import RestartedServer
from .restarted_server_status import RestartedServerStatus
from .revoked_api_key import RevokedAPIKey
from .revoked_api_key_status import RevokedAPIKeyStatus
from .server_entry import ServerEntry
from .server_entry_docker import ServerEntryDocker
from .server_entry_env import ServerEntryEnv
from .server_entry_headers import ServerEntryHeaders
from .server_entry_pin import ServerEntryPin
from .server_entry_type import ServerEntryType
from .server_item import ServerItem
from .server_item_initialization_state import ServerItemInitializationState
from .server_item_pin import ServerItemPin
from .server_item_transport import ServerItemTransport
from .server_list import ServerList
from .server_pins import ServerPins
from .server_pins_pin import ServerPinsPin
from .server_prompts import ServerPrompts
from .server_prompts_prompts_item import ServerPromptsPromptsItem
from .server_resource_templates import ServerResourceTemplates
from .server_resource_templates_resource_templates_item import ServerResourceTemplatesResourceTemplatesItem
from .server_resources import ServerResources
from .server_resources_resources_item import ServerResourcesResourcesItem
from .server_sandbox import ServerSandbox
from .server_sandbox_isolation import ServerSandboxIsolation
from .server_tools import ServerTools
from .server_worker import ServerWorker
from .server_worker_initialization_state import ServerWorkerInitializationState
from .set_clash import SetClash
from .set_detail import SetDetail
from .set_detail_origin import SetDetailOrigin
from .set_item import SetItem
from .set_item_origin import SetItemOrigin
from .set_list import SetList
from .set_tool import SetTool
from .settle_request import SettleRequest
from .settle_request_as import SettleRequestAs
from .state_change import StateChange
from .state_change_action import StateChangeAction
from .state_change_part import StateChangePart
from .state_changes import StateChanges
from .switch import Switch
from .switch_list import SwitchList
from .switch_request import SwitchRequest
from .tenant import Tenant
from .tenant_erasure import TenantErasure
from .tenant_in_flight import TenantInFlight
from .tenant_limits import TenantLimits
from .tenant_list import TenantList
from .tenant_policy import TenantPolicy
from .tenant_receivers import TenantReceivers
from .tenant_servers import TenantServers
from .tenant_set import TenantSet
from .tenant_usage import TenantUsage
from .tool_call_item import ToolCallItem
from .tool_call_item_arguments import ToolCallItemArguments
from .tool_call_item_state import ToolCallItemState
from .tool_calls_answer import ToolCallsAnswer
from .tool_calls_answer_format import ToolCallsAnswerFormat
from .tool_calls_answer_messages_item import ToolCallsAnswerMessagesItem
from .tool_definition import ToolDefinition
from .tool_definition_annotations import ToolDefinitionAnnotations
from .tool_definition_input_schema import ToolDefinitionInputSchema
from .tool_definition_output_schema import ToolDefinitionOutputSchema
from .tool_item import ToolItem
from .tool_item_definition import ToolItemDefinition
from .tool_list import ToolList
from .tool_naming import ToolNaming
from .tool_naming_conflict import ToolNamingConflict
from .tool_pin import ToolPin
from .tool_pin_accepted_definition import ToolPinAcceptedDefinition
from .tool_pin_definition import ToolPinDefinition
from .tool_pin_state import ToolPinState
from .tool_ref import ToolRef
from .tool_search import ToolSearch
from .tool_search_ranking import ToolSearchRanking
from .tool_selector import ToolSelector
from .tool_set import ToolSet
from .tool_switch import ToolSwitch
from .usage_counts import UsageCounts
from .usage_report import UsageReport
from .usage_row import UsageRow
from .version import Version
from .webhook_delivery import WebhookDelivery
from .webhook_delivery_list import WebhookDeliveryList
from .webhook_delivery_state import WebhookDeliveryState
from .wide_switch import WideSwitch
from .wide_switch_request import WideSwitchRequest
from .worker_item import WorkerItem
from .worker_item_labels import WorkerItemLabels
from .worker_list import WorkerList
from .worker_server import WorkerServer
from .worker_server_initialization_state import WorkerServerInitializationState
from .worker_server_transport import WorkerServerTransport

__all__ = (
    "AcceptedCall",
    "AcceptedCallArguments",
    "AcceptedCallOutcome",
    "AcceptedDigest",
    "AcceptRequest",
    "AcceptTool",
    "AddedServer",
    "AddedServerStatus",
    "Allowance",
    "AllowancePattern",
    "AllowanceValue",
    "APIKey",
    "APIKeyChange",
    "APIKeyChangeRole",
    "APIKeyLimits",
    "APIKeyList",
    "APIKeyOrigin",
    "APIKeyRequest",
    "APIKeyRequestRole",
    "APIKeyRole",
    "APIKeyRotation",
    "ArgumentFault",
    "AuditFault",
    "AuditFaultKind",
    "AuditRecord",
    "AuditRecordList",
    "AuditVerification",
    "Batch",
    "BatchCall",
    "BatchCallArguments",
    "BatchCounts",
    "BatchLabels",
    "BatchList",
    "BatchRequest",
    "BatchRequestLabels",
    "BatchResult",
    "BatchState",
    "Call",
    "CallArguments",
    "CallList",
    "CallRecord",
    "CallRecordDecision",
    "CallRecordError",
    "CallRequest",
    "CallRequestArguments",
    "CallState",
    "CallToolBody",
    "CallToolResult",
    "CallToolResultExecutionEnvironment",
    "CallToolResultMeta",
    "CompletedCall",
    "CompletedCallExecutionEnvironment",
    "CompletedCallMeta",
    "CompletedCallOutcome",
    "ConfigurationDisagreement",
    "ConfigurationDisagreementPart",
    "ConfigurationPart",
    "ConfigurationPartOutcome",
    "ConfigurationPartPart",
    "ConfigurationPartServers",
    "ConfigurationStatus",
    "ConfigurationVersion",
    "ConfiguredProcess",
    "ConfiguredProcessRole",
    "ConfirmationRequest",
    "ConfirmationRequestOutcome",
    "ConfirmCalls",
    "ConfirmedCalls",
    "ConfirmRequest",
    "ContentBlock",
    "ContentBlockResource",
    "Conversion",
    "ConversionCallsItem",
    "ConversionNote",
    "ConversionNoteKind",
    "ConversionRequest",
    "ConversionRequestFrom",
    "ConversionRequestTo",
    "ConversionToolsItem",
    "CreateToolCallsFormat",
    "Decision",
    "DisabledTools",
    "DrainingWorker",
    "DrainingWorkerStatus",
    "Evaluation",
    "EvaluationCategory",
    "EvaluationCategoryTypes",
    "EvaluationCheck",
    "EvaluationCheckCategories",
    "EvaluationCheckErrors",
    "EvaluationEstimate",
    "EvaluationExecution",
    "EvaluationExecutionMaskedBecause",
    "EvaluationLevel",
    "EvaluationLevelLevel",
    "EvaluationLevelTypes",
    "EvaluationList",
    "EvaluationMetrics",
    "EvaluationPass",
    "EvaluationReport",
    "EvaluationReportScoring",
    "EvaluationReportSettings",
    "EvaluationReward",
    "EvaluationTurn",
    "EvaluationTurnTypes",
    "ExportedKey",
    "ExportedKeyOrigin",
    "Fabric",
    "FabricState",
    "FabricStateFormat",
    "Fleet",
    "FleetChange",
    "FleetChangeType",
    "FormerSecret",
    "FoundTool",
    "FoundToolDecision",
    "FoundToolRisk",
    "FrontDoorItem",
    "FrontDoorList",
    "FrontDoorLoad",
    "FrontDoorTime",
    "GetCallInclude",
    "GetPromptBody",
    "GetPromptResult",
    "GetPromptResultMessagesItem",
    "GetServerOpenapiResponse200",
    "GetSetOpenapiResponse200",
    "GetUsageByItem",
    "GetUsageInterval",
    "Health",
    "HealthLosses",
    "HealthPart",
    "HealthPartOutcome",
    "HealthPartPart",
    "HealthServer",
    "HealthServerInitializationState",
    "HealthStatus",
    "HeldCall",
    "HeldCallBy",
    "HeldCalls",
    "LineRefusal",
    "ListAuditKindItem",
    "ListBatchesState",
    "ListCallsStateItem",
    "ListToolsFormat",
    "ListToolsInclude",
    "ListWebhookDeliveriesState",
    "NewAPIKey",
    "NewAPIKeyOrigin",
    "NewAPIKeyRole",
    "OwnToolCall",
    "OwnToolCallArguments",
    "OwnToolCallCall",
    "PolicyDecision",
    "PolicyDecisionApproval",
    "PolicyDecisionApprovalBy",
    "PolicyDecisionArguments",
    "PolicyDecisionDecision",
    "PolicyDecisionSandbox",
    "PolicyDryRun",
    "PolicyDryRunChange",
    "PolicyDryRunChangeNow",
    "PolicyDryRunChangeWas",
    "PolicyDryRunRequest",
    "PolicyDryRunRule",
    "PolicyDryRunUnknown",
    "PolicyTestPrincipal",
    "PolicyTestRequest",
    "PolicyTestRequestArguments",
    "PolicyText",
    "Preflight",
    "PreflightTool",
    "PreflightToolDecision",
    "PreflightToolRisk",
    "PreflightToolState",
    "ProbeStatus",
    "ProbeStatusStatus",
    "Problem",
    "ProblemFault",
    "ProblemRPCError",
    "ProviderLoosening",
    "ProviderToolList",
    "ProviderToolListFormat",
    "ProviderToolListToolsItem",
    "ProviderToolName",
    "PutSetIfNoneMatch",
    "QuarantinedTool",
    "ReadResourceResult",
    "ReadResourceResultContentsItem",
    "RefusedCall",
    "Rejected",
    "RejectedStatus",
    "RemovedServer",
    "RemovedServerStatus",
    "RemovedSet",
    "RemovedSetStatus",
    "RestartedServer",
    "RestartedServerStatus",
    "RevokedAPIKey",
    "RevokedAPIKeyStatus",
    "ServerEntry",
    "ServerEntryDocker",
    "ServerEntryEnv",
    "ServerEntryHeaders",
    "ServerEntryPin",
    "ServerEntryType",
    "ServerItem",
    "ServerItemInitializationState",
    "ServerItemPin",
    "ServerItemTransport",
    "ServerList",
    "ServerPins",
    "ServerPinsPin",
    "ServerPrompts",
    "ServerPromptsPromptsItem",
    "ServerResources",
    "ServerResourcesResourcesItem",
    "ServerResourceTemplates",
    "ServerResourceTemplatesResourceTemplatesItem",
    "ServerSandbox",
    "ServerSandboxIsolation",
    "ServerTools",
    "ServerWorker",
    "ServerWorkerInitializationState",
    "SetClash",
    "SetDetail",
    "SetDetailOrigin",
    "SetItem",
    "SetItemOrigin",
    "SetList",
    "SettleRequest",
    "SettleRequestAs",
    "SetTool",
    "StateChange",
    "StateChangeAction",
    "StateChangePart",
    "StateChanges",
    "Switch",
    "SwitchList",
    "SwitchRequest",
    "Tenant",
    "TenantErasure",
    "TenantInFlight",
    "TenantLimits",
    "TenantList",
    "TenantPolicy",
    "TenantReceivers",
    "TenantServers",
    "TenantSet",
    "TenantUsage",
    "ToolCallItem",
    "ToolCallItemArguments",
    "ToolCallItemState",
    "ToolCallsAnswer",
    "ToolCallsAnswerFormat",
    "ToolCallsAnswerMessagesItem",
    "ToolDefinition",
    "ToolDefinitionAnnotations",
    "ToolDefinitionInputSchema",
    "ToolDefinitionOutputSchema",
    "ToolItem",
    "ToolItemDefinition",
    "ToolList",
    "ToolNaming",
    "ToolNamingConflict",
    "ToolPin",
    "ToolPinAcceptedDefinition",
    "ToolPinDefinition",
    "ToolPinState",
    "ToolRef",
    "ToolSearch",
    "ToolSearchRanking",
    "ToolSelector",
    "ToolSet",
    "ToolSwitch",
    "UsageCounts",
    "UsageReport",
    "UsageRow",
    "Version",
    "WebhookDelivery",
    "WebhookDeliveryList",
    "WebhookDeliveryState",
    "WideSwitch",
    "WideSwitchRequest",
    "WorkerItem",
    "WorkerItemLabels",
    "WorkerList",
    "WorkerServer",
    "WorkerServerInitializationState",
    "WorkerServerTransport",
)
