from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.call_tool_result_execution_environment import CallToolResultExecutionEnvironment
    from ..models.call_tool_result_meta import CallToolResultMeta
    from ..models.content_block import ContentBlock


T = TypeVar("T", bound="CallToolResult")


@_attrs_define
class CallToolResult:
    """The result of the tool, exactly as the MCP server sent it. A tool that failed has isError true.

    Attributes:
        field_meta (CallToolResultMeta | Unset): Metadata of the server.
        content (list[ContentBlock] | Unset): Content blocks; each has a type.
        execution_environment (CallToolResultExecutionEnvironment | Unset): The sandbox in which the tool ran, as
            reported by Callyard and not by the server; present only if the call was isolated.
        is_error (bool | Unset): True when the tool failed.
        structured_content (Any | Unset): The result as JSON, if the tool has an output schema.
    """

    field_meta: CallToolResultMeta | Unset = UNSET
    content: list[ContentBlock] | Unset = UNSET
    execution_environment: CallToolResultExecutionEnvironment | Unset = UNSET
    is_error: bool | Unset = UNSET
    structured_content: Any | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.call_tool_result_execution_environment import CallToolResultExecutionEnvironment  # noqa: PLC0415
        from ..models.call_tool_result_meta import CallToolResultMeta  # noqa: PLC0415
        from ..models.content_block import ContentBlock  # noqa: PLC0415

        field_meta: dict[str, Any] | Unset = UNSET
        if not isinstance(self.field_meta, Unset):
            field_meta = self.field_meta.to_dict()

        content: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.content, Unset):
            content = []
            for content_item_data in self.content:
                content_item = content_item_data.to_dict()
                content.append(content_item)

        execution_environment: dict[str, Any] | Unset = UNSET
        if not isinstance(self.execution_environment, Unset):
            execution_environment = self.execution_environment.to_dict()

        is_error = self.is_error

        structured_content = self.structured_content

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if field_meta is not UNSET:
            field_dict["_meta"] = field_meta
        if content is not UNSET:
            field_dict["content"] = content
        if execution_environment is not UNSET:
            field_dict["execution_environment"] = execution_environment
        if is_error is not UNSET:
            field_dict["isError"] = is_error
        if structured_content is not UNSET:
            field_dict["structuredContent"] = structured_content

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.call_tool_result_execution_environment import CallToolResultExecutionEnvironment  # noqa: PLC0415
        from ..models.call_tool_result_meta import CallToolResultMeta  # noqa: PLC0415
        from ..models.content_block import ContentBlock  # noqa: PLC0415

        d = dict(src_dict)
        _field_meta = d.pop("_meta", UNSET)
        field_meta: CallToolResultMeta | Unset
        if isinstance(_field_meta, Unset):
            field_meta = UNSET
        else:
            field_meta = CallToolResultMeta.from_dict(_field_meta)

        _content = d.pop("content", UNSET)
        content: list[ContentBlock] | Unset = UNSET
        if _content is not UNSET:
            content = []
            for content_item_data in _content:
                content_item = ContentBlock.from_dict(content_item_data)

                content.append(content_item)

        _execution_environment = d.pop("execution_environment", UNSET)
        execution_environment: CallToolResultExecutionEnvironment | Unset
        if isinstance(_execution_environment, Unset):
            execution_environment = UNSET
        else:
            execution_environment = CallToolResultExecutionEnvironment.from_dict(_execution_environment)

        is_error = d.pop("isError", UNSET)

        structured_content = d.pop("structuredContent", UNSET)

        call_tool_result = cls(
            field_meta=field_meta,
            content=content,
            execution_environment=execution_environment,
            is_error=is_error,
            structured_content=structured_content,
        )

        call_tool_result.additional_properties = d
        return call_tool_result

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
