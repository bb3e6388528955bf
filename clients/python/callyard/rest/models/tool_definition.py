from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast

if TYPE_CHECKING:
    from ..models.tool_definition_annotations import ToolDefinitionAnnotations
    from ..models.tool_definition_input_schema import ToolDefinitionInputSchema
    from ..models.tool_definition_output_schema import ToolDefinitionOutputSchema


T = TypeVar("T", bound="ToolDefinition")


@_attrs_define
class ToolDefinition:
    """A tool, exactly as the server sent it.

    Attributes:
        name (str): The name of the tool.
        annotations (ToolDefinitionAnnotations | Unset): Hints of the server, such as readOnlyHint.
        description (str | Unset): The description of the tool.
        input_schema (ToolDefinitionInputSchema | Unset): The JSON Schema of the arguments.
        output_schema (ToolDefinitionOutputSchema | Unset): The JSON Schema of structuredContent in results; absent if
            the tool has none.
        title (str | Unset): The display name.
    """

    name: str
    annotations: ToolDefinitionAnnotations | Unset = UNSET
    description: str | Unset = UNSET
    input_schema: ToolDefinitionInputSchema | Unset = UNSET
    output_schema: ToolDefinitionOutputSchema | Unset = UNSET
    title: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.tool_definition_annotations import ToolDefinitionAnnotations  # noqa: PLC0415
        from ..models.tool_definition_input_schema import ToolDefinitionInputSchema  # noqa: PLC0415
        from ..models.tool_definition_output_schema import ToolDefinitionOutputSchema  # noqa: PLC0415

        name = self.name

        annotations: dict[str, Any] | Unset = UNSET
        if not isinstance(self.annotations, Unset):
            annotations = self.annotations.to_dict()

        description = self.description

        input_schema: dict[str, Any] | Unset = UNSET
        if not isinstance(self.input_schema, Unset):
            input_schema = self.input_schema.to_dict()

        output_schema: dict[str, Any] | Unset = UNSET
        if not isinstance(self.output_schema, Unset):
            output_schema = self.output_schema.to_dict()

        title = self.title

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
            }
        )
        if annotations is not UNSET:
            field_dict["annotations"] = annotations
        if description is not UNSET:
            field_dict["description"] = description
        if input_schema is not UNSET:
            field_dict["inputSchema"] = input_schema
        if output_schema is not UNSET:
            field_dict["outputSchema"] = output_schema
        if title is not UNSET:
            field_dict["title"] = title

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.tool_definition_annotations import ToolDefinitionAnnotations  # noqa: PLC0415
        from ..models.tool_definition_input_schema import ToolDefinitionInputSchema  # noqa: PLC0415
        from ..models.tool_definition_output_schema import ToolDefinitionOutputSchema  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        _annotations = d.pop("annotations", UNSET)
        annotations: ToolDefinitionAnnotations | Unset
        if isinstance(_annotations, Unset):
            annotations = UNSET
        else:
            annotations = ToolDefinitionAnnotations.from_dict(_annotations)

        description = d.pop("description", UNSET)

        _input_schema = d.pop("inputSchema", UNSET)
        input_schema: ToolDefinitionInputSchema | Unset
        if isinstance(_input_schema, Unset):
            input_schema = UNSET
        else:
            input_schema = ToolDefinitionInputSchema.from_dict(_input_schema)

        _output_schema = d.pop("outputSchema", UNSET)
        output_schema: ToolDefinitionOutputSchema | Unset
        if isinstance(_output_schema, Unset):
            output_schema = UNSET
        else:
            output_schema = ToolDefinitionOutputSchema.from_dict(_output_schema)

        title = d.pop("title", UNSET)

        tool_definition = cls(
            name=name,
            annotations=annotations,
            description=description,
            input_schema=input_schema,
            output_schema=output_schema,
            title=title,
        )

        tool_definition.additional_properties = d
        return tool_definition

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
