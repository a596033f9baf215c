"""Classes of Protobuf messages as protoc would make them: an order, alone or with a customer of another file."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def order_class(*, imports_customer: bool = False) -> Any:
    """The class of ``shop.Order``."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kind = descriptor_pb2.FieldDescriptorProto
    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto(name="shop/order.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    message.field.add(name="id", number=1, type=kind.TYPE_INT64, label=kind.LABEL_OPTIONAL)
    if imports_customer:
        imported = descriptor_pb2.FileDescriptorProto(name="shop/customer.proto", package="shop", syntax="proto3")
        customer = imported.message_type.add(name="Customer")
        customer.field.add(name="name", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
        pool.Add(imported)
        file.dependency.append("shop/customer.proto")
        message.field.add(
            name="customer",
            number=2,
            type=kind.TYPE_MESSAGE,
            type_name=".shop.Customer",
            label=kind.LABEL_OPTIONAL,
        )
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
